import { useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { AsCode } from '../app/as-code.tsx';
import { createCommand } from '../app/create-command.ts';
import { DeleteAct } from '../app/delete-act.tsx';
import { ListScreen } from '../app/list-screen.tsx';
import { ManifestLink } from '../app/manifest/manifest-link.tsx';
import { Page } from '../app/page.tsx';
import { Refusal, SwitchButton, switchWrite } from '../app/resource-acts.tsx';
import { EditLink, NewLink } from '../app/resource-form/form-links.tsx';
import { type RowOf, useCursorList, useOrganization, useRead, useWrite } from '../app/use-api.ts';
import { Drawer } from '../ui/drawer.tsx';
import { type FilterField, yesOrNo } from '../ui/filters.tsx';
import { count, expiryWords } from '../ui/format.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import { Payload } from '../ui/payload.tsx';
import type { Column } from '../ui/rows.tsx';
import { State } from '../ui/state.tsx';
import { EventTypeEffect } from './delete-effects.tsx';
import { SendEvent } from './send-event.tsx';

type EventType = RowOf<'GET /event-types'>;

const fields: readonly FilterField[] = [
  { name: 'search', word: 'name', hint: 'Part of its name.' },
  { name: 'category', word: 'category' },
  { name: 'isEnabled', word: 'enabled', choices: yesOrNo },
];
const columns: readonly Column<EventType>[] = [
  { title: 'Event type', className: 'mono grow', cell: ({ name }) => name },
  { title: 'State', cell: (type) => <TypeState type={type} /> },
  { title: 'Name', className: 'p2', cell: ({ displayName }) => displayName ?? <span className="dim">–</span> },
  { title: 'Category', className: 'p3', cell: ({ category }) => category ?? <span className="dim">–</span> },
  { title: 'Subscriptions', className: 'num p2', cell: ({ subscriptionCount }) => count(subscriptionCount) },
];
const keyOf = ({ id }: EventType): string => id;

/** What can customers subscribe to, and what do they get? */
export function EventTypes(): ReactElement {
  const org = useOrganization();
  const search = useSearch({ from: '/o/$org/event-types' });
  const { at: _at, isEnabled, ...rest } = search;
  const query = { ...rest, isEnabled: isEnabled === undefined ? undefined : isEnabled === 'true' };
  return (
    <Page
      title="Event catalog"
      actions={
        <>
          <AsCode name="GET /event-types" input={{ query }} />
          <NewLink family="event-types" noun="event type" />
        </>
      }
      isFull
    >
      <ListScreen
        what="event types"
        list={useCursorList('GET /event-types', query)}
        columns={columns}
        keyOf={keyOf}
        fields={fields}
        search={search}
        drawer={(id, close) => <TypeDrawer key={id} id={id} onClose={close} />}
        empty={
          <Empty title="No event type yet" command={createCommand(org, '/event-types', '{"name": "order.paid"}')}>
            <p>An event type names what you send, such as order.paid. Endpoints subscribe to it.</p>
          </Empty>
        }
      />
    </Page>
  );
}

function TypeState({ type, isPill = false }: { type: EventType; isPill?: boolean }): ReactElement {
  if (!type.isEnabled) return <State state="disabled" isPill={isPill} />;
  return type.isDeprecated ? <State state="degraded" word="Deprecated" isPill={isPill} /> : <State state="ready" isPill={isPill} />;
}

function TypeDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const input = { path: { id } };
  const { data, error, refetch } = useRead('GET /event-types/{id}', input, { everyMs: 10_000 });
  const change = useWrite('PATCH /event-types/{id}');
  if (data === undefined)
    return (
      <Drawer label="Selected event type" head={<span className="spacer" />} onClose={onClose}>
        {error === null ? <Loading what="the event type" /> : <Failure message={error.message} retry={() => void refetch()} />}
      </Drawer>
    );
  const { name, isEnabled, description, category, schema, schemaVersion, examplePayload, subscriptionCount, deprecatedMessage } = data.data;
  const { expiresAfterSeconds, updatedAt } = data.data;
  return (
    <Drawer
      label="Selected event type"
      onClose={onClose}
      head={
        <>
          <TypeState type={data.data} isPill />
          <strong>{name}</strong>
          <span className="spacer" />
        </>
      }
      foot={
        <>
          <AsCode name="GET /event-types/{id}" input={input} />
          <ManifestLink id={id} />
          <EditLink family="event-types" id={id} />
          <SwitchButton
            isOn={isEnabled}
            write={switchWrite({ name, isOn: isEnabled, change, inputOf: (isOn) => ({ ...input, body: { isEnabled: isOn } }) })}
          />
          <DeleteAct family="event-types" id={id} noun="event type" name={name} updatedAt={updatedAt} onDeleted={onClose}>
            <EventTypeEffect subscriptionCount={subscriptionCount} />
          </DeleteAct>
        </>
      }
    >
      <Refusal error={change.error} />
      <section>
        <dl className="kv is-tight">
          <dt>Description</dt>
          <dd>{description ?? <span className="dim">–</span>}</dd>
          <dt>Category</dt>
          <dd>{category ?? <span className="dim">–</span>}</dd>
          <dt>Subscriptions</dt>
          <dd>{count(subscriptionCount)}</dd>
          <dt>Expiry</dt>
          <dd>{expiryWords(expiresAfterSeconds)}</dd>
          {deprecatedMessage === null ? null : (
            <>
              <dt>Deprecated</dt>
              <dd>{deprecatedMessage}</dd>
            </>
          )}
          <dt>Id</dt>
          <dd className="id">{id}</dd>
        </dl>
      </section>
      <section>
        <header>
          <h2>Example</h2>
          <SendEvent eventTypeId={id} isSmall />
        </header>
        {examplePayload === null ? (
          <p className="small muted">It has none. One can be added with Edit.</p>
        ) : (
          <Payload source={{ text: examplePayload }} contentType="application/json" />
        )}
      </section>
      <section>
        <header>
          <h2>Schema</h2>
          <span className="hint">version {schemaVersion}</span>
        </header>
        {schema === null ? (
          <p className="small muted">It has none, so every payload is taken.</p>
        ) : (
          <Payload source={{ text: schema }} contentType="application/json" root="schema" />
        )}
      </section>
    </Drawer>
  );
}
