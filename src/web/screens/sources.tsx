import { useSearch } from '@tanstack/react-router';
import { type ReactElement, use, useState } from 'react';
import type { Answer } from '../api/client.ts';
import { providerSetup } from '../api/provider-setup.ts';
import { AsCode } from '../app/as-code.tsx';
import { createCommand } from '../app/create-command.ts';
import { DeleteAct } from '../app/delete-act.tsx';
import { ListScreen } from '../app/list-screen.tsx';
import { ManifestLink } from '../app/manifest/manifest-link.tsx';
import { Page } from '../app/page.tsx';
import { ConfirmedAct, Refusal, SwitchButton, switchWrite } from '../app/resource-acts.tsx';
import { EditLink, NewLink } from '../app/resource-form/form-links.tsx';
import { useOrganization, usePages, useRead, useWrite } from '../app/use-api.ts';
import { CopyButton } from '../ui/copy.tsx';
import { Drawer } from '../ui/drawer.tsx';
import { type FilterField, yesOrNo } from '../ui/filters.tsx';
import { count, quantity } from '../ui/format.ts';
import { Command, Empty, Failure, Loading } from '../ui/notices.tsx';
import type { Column } from '../ui/rows.tsx';
import { State } from '../ui/state.tsx';
import { Ago, type Zone, ZoneContext } from '../ui/time.tsx';
import { DeliveryTimeFields } from './delivery-time-fields.tsx';
import { FailedSignatures } from './failed-signatures.tsx';
import { type DeliveryTime, deliveredNow, longestDelaySeconds, sentTime } from './send-time.ts';

type Source = Answer<'GET /sources'>['data'][number];

const fields: readonly FilterField[] = [
  { name: 'search', word: 'name', hint: 'Part of its name or slug.' },
  { name: 'enabled', word: 'enabled', choices: yesOrNo },
];
const columns: readonly Column<Source>[] = [
  { title: 'Source', className: 'grow', cell: ({ name }) => name },
  { title: 'State', cell: ({ enabled }) => <State state={enabled ? 'ready' : 'disabled'} /> },
  { title: 'Provider', className: 'p2', cell: ({ provider }) => provider },
  { title: 'Signature', className: 'p3', cell: (source) => verification(source) },
  { title: 'Events', className: 'num p3', cell: ({ eventsCount }) => count(eventsCount) },
  { title: 'Routes', className: 'num p3', cell: ({ routeCount }) => count(routeCount) },
  {
    title: 'Last event',
    cell: ({ lastEventAt }) => (lastEventAt === null ? <span className="dim">never</span> : <Ago at={lastEventAt} />),
  },
];
const keyOf = ({ id }: Source): string => id;
const rowsOf = ({ data }: Answer<'GET /sources'>): Source[] => data;

/** Where do events come in, and are their senders checked? */
export function Sources(): ReactElement {
  const org = useOrganization();
  const search = useSearch({ from: '/o/$org/sources' });
  const query = { search: search.search, enabled: search.enabled === undefined ? undefined : search.enabled === 'true' };
  return (
    <Page
      title="Sources"
      actions={
        <>
          <AsCode name="GET /sources" input={{ query }} />
          <NewLink family="sources" noun="source" />
        </>
      }
      isFull
    >
      <ListScreen
        what="sources"
        list={usePages('GET /sources', query, rowsOf)}
        columns={columns}
        keyOf={keyOf}
        fields={fields}
        search={search}
        drawer={(id, close) => <SourceDrawer key={id} id={id} onClose={close} />}
        empty={
          <Empty title="No source yet" command={createCommand(org, '/sources', '{"name": "Orders", "slug": "orders"}')}>
            <p>A source has an address that a sender calls.</p>
          </Empty>
        }
      />
    </Page>
  );
}

function SourceDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const input = { path: { id } };
  const { data: source, error, refetch } = useRead('GET /sources/{id}', input, { everyMs: 10_000 });
  const change = useWrite('PATCH /sources/{id}');
  if (source === undefined)
    return (
      <Drawer label="Selected source" head={<span className="spacer" />} onClose={onClose}>
        {error === null ? <Loading what="the source" /> : <Failure message={error.message} retry={() => void refetch()} />}
      </Drawer>
    );
  const { name, enabled, ingestUrl, allowedMethods, routeCount } = source;
  const switching = switchWrite({ name, isOn: enabled, change, inputOf: (isOn) => ({ ...input, body: { enabled: isOn } }) });
  return (
    <Drawer
      label="Selected source"
      onClose={onClose}
      head={
        <>
          <State state={enabled ? 'ready' : 'disabled'} isPill />
          <strong>{name}</strong>
          <span className="spacer" />
        </>
      }
      foot={
        <>
          <AsCode name="GET /sources/{id}" input={input} />
          <ManifestLink id={id} />
          <EditLink family="sources" id={id} />
          {enabled ? (
            <ConfirmedAct word="Disable source" question={`Disable source ${name}?`} write={switching}>
              <p>Its address refuses events with 403 at once. Senders that do not try again lose them.</p>
            </ConfirmedAct>
          ) : (
            <SwitchButton isOn={false} write={switching} />
          )}
          <DeleteAct family="sources" id={id} noun="source" name={name} updatedAt={source.updatedAt} onDeleted={onClose}>
            <p>
              Its address refuses events from then on.{' '}
              {routeCount === 0
                ? 'No route begins at it.'
                : `${quantity(routeCount, 'route begins', 'routes begin')} at it: the API does not delete a source that has routes.`}{' '}
              Events that it has received are kept until their retention ends.
            </p>
          </DeleteAct>
        </>
      }
    >
      <Refusal error={change.error} />
      <section>
        <dl className="kv is-tight">
          <dt>Provider</dt>
          <dd>{source.provider}</dd>
          <dt>Signature</dt>
          <dd>{verification(source)}</dd>
          <dt>Events</dt>
          <dd>{count(source.eventsCount)}</dd>
          <dt>Routes</dt>
          <dd>{count(routeCount)}</dd>
          <dt>Id</dt>
          <dd className="id">{id}</dd>
        </dl>
      </section>
      <section>
        <header>
          <h2>Set up the sender</h2>
        </header>
        <dl className="kv is-tight">
          <dt>URL</dt>
          <dd>
            <code>{ingestUrl}</code> <CopyButton text={ingestUrl} label="Copy URL" isQuiet />
          </dd>
          <dt>Method</dt>
          <dd>{allowedMethods.join(', ')}</dd>
          <dt>Content type</dt>
          <dd>As the sender has it; filters read JSON and forms.</dd>
          <SenderSetup provider={source.provider} />
          <dt>Secret</dt>
          <dd>
            {source.hasSigningSecret
              ? `The sender has the same one${source.signingSecretLast4 === null ? '' : `; it ends in ${source.signingSecretLast4}`}.`
              : source.awaitsSigningSecret
                ? 'None: the import left it out. The source cannot be enabled before it has one, or awaits none.'
                : 'None. Anybody who knows the URL can send.'}
          </dd>
        </dl>
      </section>
      {checksSignatures(source) ? <FailedSignatures sourceId={id} /> : null}
      <section>
        <header>
          <h2>Send a test event</h2>
        </header>
        <TestEvent source={source} />
      </section>
    </Drawer>
  );
}

/** A command that sends an event, at once or later. */
function TestEvent({ source }: { source: Source }): ReactElement {
  const zone = use(ZoneContext);
  const [when, setWhen] = useState(deliveredNow);
  const header = scheduleHeader(when, zone);
  const command = testCommand(source, header ?? '');
  if (command === null) return <p className="small muted">Only {source.provider} can sign one. Use the test of its own console.</p>;
  return (
    <div className="stack">
      <DeliveryTimeFields value={when} onChange={setWhen} />
      {header === null ? (
        <p className="small muted">The command is here once the time is complete, and within 7 days.</p>
      ) : (
        <Command text={command} />
      )}
    </div>
  );
}

/** The header that schedules an event, as an argument of curl; empty: it is delivered at once; null: the time is not complete, or too late. */
function scheduleHeader(when: DeliveryTime, zone: Zone): string | null {
  const time = sentTime(when, zone);
  if (time === null) return null;
  const { delaySeconds, deliverAt } = time;
  const seconds = deliverAt === undefined ? (delaySeconds ?? 0) : (new Date(deliverAt).getTime() - Date.now()) / 1000;
  if (seconds > longestDelaySeconds) return null;
  if (deliverAt !== undefined) return `-H 'x-posthorn-deliver-at: ${deliverAt}' \\\n  `;
  return delaySeconds === undefined ? '' : `-H 'x-posthorn-delay-seconds: ${delaySeconds}' \\\n  `;
}

/** How the provider signs, and which of its secrets the source needs. */
function SenderSetup({ provider }: Pick<Source, 'provider'>): ReactElement | null {
  const setup = providerSetup[provider];
  if (setup === undefined) return null;
  const { title, url, header, signed, secret, isSecretOurs } = setup;
  return (
    <>
      <dt>Signature of</dt>
      <dd>
        {url === null ? (
          title
        ) : (
          <a href={url} target="_blank" rel="noreferrer">
            {title}
          </a>
        )}
      </dd>
      <dt>Header</dt>
      <dd>{header}</dd>
      <dt>Signed</dt>
      <dd>{signed}</dd>
      <dt>Kind of secret</dt>
      <dd>
        {secret}
        {isSecretOurs ? '' : `, which ${title} makes`}
      </dd>
    </>
  );
}

/** Without a secret it refuses all, or checks nothing. */
function checksSignatures({ provider, hasSigningSecret, rejectInvalidSignatures }: Source): boolean {
  return provider !== 'posthorn' && (hasSigningSecret || rejectInvalidSignatures);
}

function verification({ provider, hasSigningSecret, rejectInvalidSignatures }: Source): string {
  if (provider === 'posthorn') return 'Own events';
  if (!hasSigningSecret) return 'Not checked';
  return rejectInvalidSignatures ? 'Checked, wrong ones refused' : 'Checked, wrong ones marked';
}

/** Null: nobody but the provider signs such a request. */
function testCommand({ provider, hasSigningSecret, ingestUrl }: Source, schedule: string): string | null {
  const body = '{"hello":"world"}';
  const send = `${schedule}-H 'content-type: application/json' \\\n  -d '${body}' \\\n  '${ingestUrl}'`;
  if (provider === 'posthorn') return null;
  if (!hasSigningSecret) return `curl ${send}`;
  const header = { generic: 'X-Webhook-Signature', github: 'X-Hub-Signature-256', bitbucket: 'X-Hub-Signature' }[provider as string];
  if (header === undefined) return null;
  return `SIGNATURE=$(printf %s '${body}' | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)\ncurl -H "${header}: sha256=$SIGNATURE" \\\n  ${send}`;
}
