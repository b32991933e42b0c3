import { Link, useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { AsCode } from '../app/as-code.tsx';
import { createCommand } from '../app/create-command.ts';
import { DeleteAct } from '../app/delete-act.tsx';
import { ListScreen } from '../app/list-screen.tsx';
import { ManifestLink } from '../app/manifest/manifest-link.tsx';
import { Page } from '../app/page.tsx';
import { disabledChange, Refusal, SwitchButton, switchWrite } from '../app/resource-acts.tsx';
import { EditLink, NewEndpointLink, NewLink } from '../app/resource-form/form-links.tsx';
import { ShortList } from '../app/short-list.tsx';
import { type RowOf, useCursorList, useOrganization, useRead, useWrite } from '../app/use-api.ts';
import { Drawer } from '../ui/drawer.tsx';
import { type FilterField, yesOrNo } from '../ui/filters.tsx';
import { count, quantity } from '../ui/format.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import type { Column } from '../ui/rows.tsx';
import { State } from '../ui/state.tsx';
import { Ago } from '../ui/time.tsx';
import { SendEvent } from './send-event.tsx';
import { endpointState, targetWord } from './target-data.ts';

type Application = RowOf<'GET /webhook-applications'>;

const fields: readonly FilterField[] = [
  { name: 'search', word: 'name', hint: 'Part of its name or of your id for it.' },
  { name: 'isDisabled', word: 'disabled', choices: yesOrNo },
];
const columns: readonly Column<Application>[] = [
  { title: 'Application', className: 'grow', cell: ({ name }) => name },
  { title: 'State', cell: ({ isDisabled }) => <State state={isDisabled ? 'disabled' : 'ready'} /> },
  { title: 'Your id', className: 'mono p2', cell: ({ externalId }) => externalId ?? <span className="dim">–</span> },
  { title: 'Endpoints', className: 'num', cell: ({ totalEndpoints }) => count(totalEndpoints) },
  { title: 'Sent', className: 'num p2', cell: ({ totalMessagesSent }) => count(totalMessagesSent) },
  { title: 'Failed', className: 'num p3', cell: ({ totalMessagesFailed }) => count(totalMessagesFailed) },
];
const keyOf = ({ id }: Application): string => id;

/** Which customers get webhooks, and where? */
export function Applications(): ReactElement {
  const org = useOrganization();
  const search = useSearch({ from: '/o/$org/applications' });
  const query = { search: search.search, isDisabled: search.isDisabled === undefined ? undefined : search.isDisabled === 'true' };
  return (
    <Page
      title="Applications"
      actions={
        <>
          <AsCode name="GET /webhook-applications" input={{ query }} />
          <NewLink family="applications" noun="application" />
        </>
      }
      isFull
    >
      <ListScreen
        what="applications"
        list={useCursorList('GET /webhook-applications', query)}
        columns={columns}
        keyOf={keyOf}
        fields={fields}
        search={search}
        drawer={(id, close) => <ApplicationDrawer key={id} id={id} onClose={close} />}
        empty={
          <Empty
            title="No application yet"
            command={createCommand(org, '/webhook-applications', '{"name": "Acme", "externalId": "customer-17"}')}
          >
            <p>An application is one of your customers; its endpoints get the messages that you send.</p>
          </Empty>
        }
      />
    </Page>
  );
}

function ApplicationDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const input = { path: { id } };
  const { data, error, refetch } = useRead('GET /webhook-applications/{id}', input, { everyMs: 10_000 });
  const change = useWrite('PATCH /webhook-applications/{id}');
  if (data === undefined)
    return (
      <Drawer label="Selected application" head={<span className="spacer" />} onClose={onClose}>
        {error === null ? <Loading what="the application" /> : <Failure message={error.message} retry={() => void refetch()} />}
      </Drawer>
    );
  const { name, isDisabled, disabledReason, externalId, totalEndpoints, lastEventAt, updatedAt } = data.data;
  return (
    <Drawer
      label="Selected application"
      onClose={onClose}
      head={
        <>
          <State state={isDisabled ? 'disabled' : 'ready'} isPill />
          <strong>{name}</strong>
          <span className="spacer" />
        </>
      }
      foot={
        <>
          <AsCode name="GET /webhook-applications/{id}" input={input} />
          <ManifestLink id={id} />
          <EditLink family="applications" id={id} />
          <SwitchButton
            isOn={!isDisabled}
            write={switchWrite({
              name,
              isOn: !isDisabled,
              change,
              inputOf: (isOn) => ({ ...input, body: disabledChange(isOn, disabledReason) }),
            })}
          />
          <DeleteAct family="webhook-applications" id={id} noun="application" name={name} updatedAt={updatedAt} onDeleted={onClose}>
            <p>Its endpoints ({count(totalEndpoints)}) go with it. Messages that wait for them are not sent.</p>
          </DeleteAct>
        </>
      }
    >
      <Refusal error={change.error} />
      <section>
        <dl className="kv is-tight">
          <dt>Your id</dt>
          <dd>{externalId ?? <span className="dim">–</span>}</dd>
          {disabledReason === null ? null : (
            <>
              <dt>Disabled because</dt>
              <dd>{disabledReason}</dd>
            </>
          )}
          <dt>Last event</dt>
          <dd>{lastEventAt === null ? <span className="dim">never</span> : <Ago at={lastEventAt} />}</dd>
          <dt>Id</dt>
          <dd className="id">{id}</dd>
        </dl>
      </section>
      <Endpoints applicationId={id} />
      <section>
        <header>
          <h2>Events</h2>
          <SendEvent applicationId={id} isSmall />
        </header>
        <p className="small muted">An event goes to the endpoints of the application that subscribe to its type.</p>
      </section>
    </Drawer>
  );
}

function Endpoints({ applicationId }: { applicationId: string }): ReactElement {
  const list = useCursorList('GET /webhook-endpoints', { applicationId });
  return (
    <section>
      <header>
        <h2>Endpoints</h2>
        <NewEndpointLink applicationId={applicationId} />
      </header>
      <ShortList what="endpoints" empty="It has no endpoint, so it gets no message." list={list}>
        {(endpoint) => (
          <Endpoint
            key={endpoint.id}
            id={endpoint.id}
            url={endpoint.url}
            state={endpointState(endpoint)}
            messages={endpoint.totalMessages}
          />
        )}
      </ShortList>
    </section>
  );
}

function Endpoint({ id, url, state, messages }: { id: string; url: string; state: string; messages: number }): ReactElement {
  const org = useOrganization();
  return (
    <>
      <dt>
        <State state={state} word={targetWord(state)} />
      </dt>
      <dd>
        <Link to="/o/$org/targets/$id" params={{ org, id }}>
          {url}
        </Link>{' '}
        <span className="sub">{quantity(messages, 'message')}</span>
      </dd>
    </>
  );
}
