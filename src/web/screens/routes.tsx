import { useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import type { Answer } from '../api/client.ts';
import { AsCode } from '../app/as-code.tsx';
import { createCommand } from '../app/create-command.ts';
import { DeleteAct } from '../app/delete-act.tsx';
import { ListScreen } from '../app/list-screen.tsx';
import { ManifestLink } from '../app/manifest/manifest-link.tsx';
import { filteredName, IdLink } from '../app/names.tsx';
import { Page } from '../app/page.tsx';
import { Refusal, SwitchButton, switchWrite } from '../app/resource-acts.tsx';
import { EditLink, NewLink } from '../app/resource-form/form-links.tsx';
import { useOrganization, usePages, useRead, useWrite } from '../app/use-api.ts';
import { Drawer } from '../ui/drawer.tsx';
import { type FilterField, yesOrNo } from '../ui/filters.tsx';
import { count } from '../ui/format.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import type { Column } from '../ui/rows.tsx';
import { State } from '../ui/state.tsx';
import { Ago, Countdown } from '../ui/time.tsx';

type Route = Answer<'GET /routes'>['data'][number];
type Condition = NonNullable<Route['filterConditions']>[number];

const fields: readonly FilterField[] = [
  { name: 'search', word: 'name', hint: 'Part of its name or slug.' },
  { name: 'enabled', word: 'enabled', choices: yesOrNo },
  { name: 'sourceId', word: 'source', hint: 'Its id.', show: filteredName },
  { name: 'destinationId', word: 'destination', hint: 'Its id.', show: filteredName },
];
const columns: readonly Column<Route>[] = [
  { title: 'Route', className: 'grow', cell: ({ name }) => name },
  { title: 'State', cell: ({ enabled }) => <State state={enabled ? 'ready' : 'disabled'} /> },
  { title: 'From', className: 'p2', cell: ({ source }) => source.name },
  { title: 'To', className: 'p2', cell: ({ destinations }) => destinations.map(({ name }) => name).join(', ') },
  { title: 'Filter', className: 'p3 muted', cell: (route) => filterWords(route) },
  { title: 'Events', className: 'num p2', cell: ({ eventsRouted }) => count(eventsRouted) },
];
const keyOf = ({ id }: Route): string => id;
const rowsOf = ({ data }: Answer<'GET /routes'>): Route[] => data;

/** Which events go where, and under which condition? */
export function Routes(): ReactElement {
  const org = useOrganization();
  const search = useSearch({ from: '/o/$org/routes' });
  const { at: _at, enabled, ...rest } = search;
  const query = { ...rest, enabled: enabled === undefined ? undefined : enabled === 'true' };
  return (
    <Page
      title="Routes"
      actions={
        <>
          <AsCode name="GET /routes" input={{ query }} />
          <NewLink family="routes" noun="route" />
        </>
      }
      isFull
    >
      <ListScreen
        what="routes"
        list={usePages('GET /routes', query, rowsOf)}
        columns={columns}
        keyOf={keyOf}
        fields={fields}
        search={search}
        drawer={(id, close) => <RouteDrawer key={id} id={id} onClose={close} />}
        empty={
          <Empty
            title="No route yet"
            command={createCommand(org, '/routes', '{"name": "orders", "sourceId": "shop", "destinationIds": ["billing"]}')}
          >
            <p>Without a route, events of a source are kept and go nowhere. A route leads them to destinations.</p>
          </Empty>
        }
      />
    </Page>
  );
}

function RouteDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const input = { path: { id } };
  const { data: route, error, refetch } = useRead('GET /routes/{id}', input, { everyMs: 10_000 });
  const change = useWrite('PATCH /routes/{id}');
  if (route === undefined)
    return (
      <Drawer label="Selected route" head={<span className="spacer" />} onClose={onClose}>
        {error === null ? <Loading what="the route" /> : <Failure message={error.message} retry={() => void refetch()} />}
      </Drawer>
    );
  const { name, enabled, filterConditions, filter } = route;
  return (
    <Drawer
      label="Selected route"
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
          <AsCode name="GET /routes/{id}" input={input} />
          <ManifestLink id={id} />
          <EditLink family="routes" id={id} />
          <SwitchButton
            isOn={enabled}
            write={switchWrite({ name, isOn: enabled, change, inputOf: (isOn) => ({ ...input, body: { enabled: isOn } }) })}
          />
          <DeleteAct family="routes" id={id} noun="route" name={name} updatedAt={route.updatedAt} onDeleted={onClose}>
            <p>
              Events of {route.source.name} no longer go to {route.destinations.map((each) => each.name).join(', ')}. The source and the
              destinations stay.
            </p>
          </DeleteAct>
        </>
      }
    >
      <Refusal error={change.error} />
      <section>
        <dl className="kv is-tight">
          <dt>From</dt>
          <dd>
            <IdLink id={route.source.id} called={route.source.name} />
          </dd>
          <dt>To</dt>
          <dd>
            {route.destinations.map((each, index) => (
              <span key={each.id}>
                {index === 0 ? '' : ', '}
                <IdLink id={each.id} called={each.name} />
              </span>
            ))}
          </dd>
          <dt>Transform</dt>
          <dd>{route.transform?.name ?? <span className="dim">–</span>}</dd>
          <dt>Schema</dt>
          <dd>{route.schema?.name ?? <span className="dim">–</span>}</dd>
          <dt>Priority</dt>
          <dd>{route.priority}</dd>
          <dt>Last event</dt>
          <dd>{route.lastEventAt === null ? <span className="dim">never</span> : <Ago at={route.lastEventAt} />}</dd>
          <dt>Id</dt>
          <dd className="id">{id}</dd>
        </dl>
      </section>
      <section>
        <header>
          <h2>Filter</h2>
          <span className="hint">{filter?.name}</span>
        </header>
        {filter !== null ? <NamedFilter id={filter.id} /> : null}
        {filter === null || (filterConditions ?? []).length > 0 ? (
          <Conditions conditions={filterConditions ?? []} logic={route.filterLogic} />
        ) : null}
      </section>
      <Circuit id={id} />
    </Drawer>
  );
}

function Circuit({ id }: { id: string }): ReactElement {
  const { data: circuit, error } = useRead('GET /routes/{id}/circuit-status', { path: { id } }, { everyMs: 10_000 });
  if (circuit === undefined)
    return <section>{error === null ? <Loading what="the circuit" /> : <Failure message={error.message} />}</section>;
  const { circuitState, failureCount, failureThreshold, openedAt, cooldownSeconds } = circuit;
  return (
    <section>
      <header>
        <h2>Circuit</h2>
      </header>
      <dl className="kv is-tight">
        <dt>State</dt>
        <dd>
          <State state={circuitState} />
        </dd>
        <dt>Failures in a row</dt>
        <dd>
          {count(failureCount)} of {count(failureThreshold)} that open it
        </dd>
        {circuitState === 'open' && openedAt !== null ? (
          <>
            <dt>Next probe in</dt>
            <dd>
              <Countdown at={new Date(Date.parse(openedAt) + cooldownSeconds * 1000).toISOString()} />
            </dd>
          </>
        ) : null}
      </dl>
    </section>
  );
}

function NamedFilter({ id }: { id: string }): ReactElement {
  const { data, error } = useRead('GET /filters/{id}', { path: { id } });
  if (data === undefined) return error === null ? <Loading what="the filter" /> : <Failure message={error.message} />;
  return <Conditions conditions={data.conditions} logic={data.logic} />;
}

function Conditions({ conditions, logic }: { conditions: readonly Condition[]; logic: 'AND' | 'OR' }): ReactElement {
  if (conditions.length === 0) return <p className="small muted">All events of the source pass.</p>;
  return (
    <>
      <p className="small muted">
        {logic === 'AND' ? 'An event passes when all of these are true:' : 'An event passes when one of these is true:'}
      </p>
      <ul className="plain">
        {conditions.map((condition) => (
          <li key={JSON.stringify(condition)}>
            <code>{conditionWords(condition)}</code>
          </li>
        ))}
      </ul>
    </>
  );
}

function conditionWords({ field, operator, value }: Condition): string {
  return `${field} ${operator}${value === undefined ? '' : ` ${JSON.stringify(value)}`}`;
}

function filterWords({ filter, filterConditions, filterLogic }: Route): string {
  if (filter !== null) return filter.name;
  const [first, ...more] = filterConditions ?? [];
  if (first === undefined) return 'All events';
  return more.length === 0
    ? conditionWords(first)
    : `${conditionWords(first)} ${filterLogic === 'AND' ? 'and' : 'or'} ${count(more.length)} more`;
}
