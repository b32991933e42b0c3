import { Link } from '@tanstack/react-router';
import { type ReactElement, type ReactNode, useEffect, useState } from 'react';
import type { Answer } from '../api/client.ts';
import { createCommand } from '../app/create-command.ts';
import type { Range } from '../app/range.ts';
import { useOrganization, useRead } from '../app/use-api.ts';
import { countdown } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { Command } from '../ui/notices.tsx';
import { useNow } from '../ui/time.tsx';

const listed = 4;
/** A user who sends the first event waits for it at this screen. */
const everyMs = 1000;
const sample = { type: 'order.paid', total: 900 };

/** Shown until the first event arrives: how to send it, and what exists. `range`: of the overview, which ends this screen by what is read here. */
export function FirstRun({ sources, range }: { sources: Answer<'GET /sources'>['data']; range: Range['value'] }): ReactElement {
  const org = useOrganization();
  useRead('GET /analytics/dashboard', { query: { range } }, { everyMs });
  useRead('GET /sources', { query: { pageSize: 100 } }, { everyMs });
  const routes = useRead('GET /routes', { query: { pageSize: listed } });
  const destinations = useRead('GET /destinations', { query: { pageSize: listed } });
  const open = sources.find(({ enabled, hasSigningSecret }) => enabled && !hasSigningSecret) ?? sources[0];
  useEffect(() => {
    document.title = 'Send the first event · Posthorn';
  }, []);
  return (
    <main className="main" id="main" tabIndex={-1}>
      <div className="first-run">
        <div className="first-head">
          <Icon name="horn" size={40} className="horn" />
          <h1>Send the first event</h1>
          <p className="muted">
            {open === undefined ? (
              'A source gives senders an address. There is none yet.'
            ) : (
              <>
                Posthorn listens on <code>{new URL(open.ingestUrl).origin}</code>. Copy this into a terminal.
              </>
            )}
          </p>
        </div>
        {open === undefined ? (
          <Command text={createCommand(org, '/sources', '{"name": "shop"}')} />
        ) : (
          <Command text={`curl ${open.ingestUrl} \\\n  -H 'content-type: application/json' \\\n  -d '${JSON.stringify(sample)}'`} />
        )}
        {open === undefined ? null : <Waiting />}
        <ol className="setup" aria-label="What is in place">
          {sources.slice(0, listed).map(({ id, name, provider, hasSigningSecret }) => (
            <Thing key={id} kind="Source" id={id} name={name}>
              {provider === 'generic' ? 'takes any JSON' : `takes events of ${provider}`}; signatures are{hasSigningSecret ? '' : ' not'}{' '}
              checked
            </Thing>
          ))}
          {(routes.data?.data ?? []).map(({ id, name, source, destinations: to }) => (
            <Thing key={id} kind="Route" id={id} name={name}>
              from {source.name} to {to.map((each) => each.name).join(', ')}
            </Thing>
          ))}
          {(destinations.data?.data ?? []).map(({ id, name, url }) => (
            <Thing key={id} kind="Destination" id={id} name={name}>
              {url}
            </Thing>
          ))}
        </ol>
        <div className="first-more">
          <h2>Or begin with your own</h2>
          <ul>
            <li>
              <Link to="/o/$org/sources" params={{ org }}>
                <Icon name="source" />
                <span>
                  <b>Receive from a provider</b>
                  <span className="muted">GitHub, Stripe, Shopify and others</span>
                </span>
              </Link>
            </li>
            <li>
              <Link to="/o/$org/applications" params={{ org }}>
                <Icon name="apps" />
                <span>
                  <b>Send to customers</b>
                  <span className="muted">an application, an endpoint, an event type</span>
                </span>
              </Link>
            </li>
            <li>
              <Link to="/o/$org/live" params={{ org }}>
                <Icon name="live" />
                <span>
                  <b>Watch live</b>
                  <span className="muted">each event and attempt as it happens</span>
                </span>
              </Link>
            </li>
          </ul>
        </div>
      </div>
    </main>
  );
}

function Waiting(): ReactElement {
  const now = useNow(1000);
  const [since] = useState(() => Date.now());
  return (
    <div className="waiting" role="status">
      <span className="pulse" />
      <div>
        <strong>Waiting for the first event</strong>
        <p className="muted small">It appears here by itself.</p>
      </div>
      <span className="spacer" />
      <span className="small dim" aria-hidden="true">
        {countdown(Math.max(1, now - since))}
      </span>
    </div>
  );
}

function Thing({ kind, id, name, children }: { kind: string; id: string; name: string; children: ReactNode }): ReactElement {
  const org = useOrganization();
  return (
    <li>
      <Icon name="ok" />
      <div>
        <strong>
          {kind}{' '}
          <Link to="/o/$org/id/$id" params={{ org, id }}>
            {name}
          </Link>
        </strong>
        <span className="muted">{children}</span>
      </div>
    </li>
  );
}
