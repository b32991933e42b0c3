import { type ReactElement, useCallback } from 'react';
import type { Answer } from '../api/client.ts';
import { AsCode } from '../app/as-code.tsx';
import { createCommand } from '../app/create-command.ts';
import { Page } from '../app/page.tsx';
import { ConfirmedAct } from '../app/resource-acts.tsx';
import { useOrganization, usePages, useRead, useWrite } from '../app/use-api.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import { Panel } from '../ui/panel.tsx';
import { Ago, Day } from '../ui/time.tsx';
import { NewApiKey } from './new-api-key.tsx';

type Key = Answer<'GET /api-keys'>['data'][number];
type KnownSession = Answer<'GET /sessions'>['data'][number];

const keysOf = ({ data }: Answer<'GET /api-keys'>): Key[] => data;

/** Who can act here, with which rights, and who is signed in? */
export function Access(): ReactElement {
  return (
    <Page title="Keys and sessions" actions={<AsCode name="GET /api-keys" input={{}} />}>
      <ApiKeys />
      <Sessions />
    </Page>
  );
}

function ApiKeys(): ReactElement {
  const org = useOrganization();
  const { rows, error, isLoading, hasMore, loadMore, refresh } = usePages('GET /api-keys', {}, keysOf);
  return (
    <Panel title="API keys" end={<NewApiKey />}>
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={refresh} />}
      {isLoading ? <Loading what="the keys" /> : null}
      {!isLoading && error === null && rows.length === 0 ? (
        <Empty title="No API key" command={createCommand(org, '/api-keys', '{"name": "deploy pipeline", "role": "developer"}')}>
          <p>Programs and people call the API with a key.</p>
        </Empty>
      ) : null}
      {rows.length === 0 ? null : (
        <ScrolledTable label="API keys" titles={['Name', 'Key', 'Role', 'Scopes', 'Last use', 'Expires', 'Made by', '']}>
          {rows.map((key) => (
            <KeyRow key={key.id} apiKey={key} />
          ))}
        </ScrolledTable>
      )}
      {hasMore ? (
        <button type="button" className="btn is-sm" onClick={loadMore}>
          More keys
        </button>
      ) : null}
    </Panel>
  );
}

function KeyRow({ apiKey }: { apiKey: Key }): ReactElement {
  const { id, name, prefix, role, scopes, lastUsedAt, expiresAt, createdBy } = apiKey;
  const remove = useWrite('DELETE /api-keys/{id}');
  return (
    <tr>
      <td>{name}</td>
      <td className="mono" data-label="Key">
        {prefix}…
      </td>
      <td data-label="Role">{role}</td>
      <td data-label="Scopes">{scopes.join(', ')}</td>
      <td data-label="Last use">{lastUsedAt === null ? <span className="dim">never</span> : <Ago at={lastUsedAt} />}</td>
      <td data-label="Expires">{expiresAt === null ? <span className="dim">never</span> : <Day at={expiresAt} />}</td>
      <td data-label="Made by">{madeBy(createdBy)}</td>
      <td>
        <ConfirmedAct
          word="Revoke key"
          isSmall
          question={`Revoke key ${name}?`}
          write={{ ...remove, mutate: () => remove.mutate({ path: { id } }) }}
        >
          <p>Whatever uses it is refused from its next call on. A revoked key does not come back.</p>
        </ConfirmedAct>
      </td>
    </tr>
  );
}

function Sessions(): ReactElement {
  const { data, error, refetch } = useRead('GET /sessions', {}, { everyMs: 60_000 });
  const retry = useCallback(() => void refetch(), [refetch]);
  return (
    <Panel title="Sessions">
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={retry} />}
      {data === undefined && error === null ? <Loading what="the sessions" /> : null}
      {data?.data.length === 0 ? <p className="panel-body muted">Nobody is signed in to the console.</p> : null}
      {data === undefined || data.data.length === 0 ? null : (
        <ScrolledTable label="Sessions" titles={['Who', 'Address', 'Browser', 'Since', 'Last seen', 'Ends', '']}>
          {data.data.map((session) => (
            <SessionRow key={session.id} session={session} />
          ))}
        </ScrolledTable>
      )}
    </Panel>
  );
}

function SessionRow({ session }: { session: KnownSession }): ReactElement {
  const { id, who, isCurrent, address, userAgent, createdAt, lastSeenAt, expiresAt } = session;
  const revoke = useWrite('DELETE /sessions/{id}');
  return (
    <tr>
      <td>
        {who}
        {isCurrent ? <span className="sub"> this browser</span> : null}
      </td>
      <td className="mono" data-label="Address">
        {address}
      </td>
      <td className="muted" data-label="Browser">
        {userAgent}
      </td>
      <td data-label="Since">
        <Ago at={createdAt} />
      </td>
      <td data-label="Last seen">
        <Ago at={lastSeenAt} />
      </td>
      <td data-label="Ends">{expiresAt === null ? <span className="dim">never</span> : <Day at={expiresAt} />}</td>
      <td>
        <ConfirmedAct
          word="Revoke session"
          isSmall
          question={`Revoke the session of ${who}?`}
          write={{ ...revoke, mutate: () => revoke.mutate({ path: { id } }) }}
        >
          <p>The browser at {address} is signed out at its next call. Anyone who has the credential can sign in again.</p>
        </ConfirmedAct>
      </td>
    </tr>
  );
}

function ScrolledTable({ label, titles, children }: { label: string; titles: readonly string[]; children: ReactElement[] }): ReactElement {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="table-wrap" tabIndex={0} aria-label={label}>
      <table className="table is-stack">
        <thead>
          <tr>
            {titles.map((title) => (
              <th key={title} scope="col">
                {title === '' ? <span className="vh">Act</span> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

/** The key of an installation has no maker. */
function madeBy(maker: Key['createdBy'] | null): ReactElement {
  return maker === null ? <span className="dim">–</span> : <span>{maker.name}</span>;
}
