import { type ReactElement, type ReactNode, useCallback } from 'react';
import type { Answer } from '../api/client.ts';
import { AsCode } from '../app/as-code.tsx';
import { Page } from '../app/page.tsx';
import { useRead } from '../app/use-api.ts';
import { bytes, count, duration, percent } from '../ui/format.ts';
import { Icon } from '../ui/icon.tsx';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import { Panel } from '../ui/panel.tsx';
import { State } from '../ui/state.tsx';
import { Ago } from '../ui/time.tsx';

type Shown = Answer<'GET /installation'>;
type Part = Shown['unread'][number]['part'];

const everyMs = 10_000;
const unknown = 'unknown';

/** Does the installation itself work: workers, shards, Redis? */
export function Installation(): ReactElement {
  const { data, error, refetch } = useRead('GET /installation', {}, { everyMs });
  const retry = useCallback(() => void refetch(), [refetch]);
  const sub = data === undefined ? undefined : `Posthorn ${data.version}, ${data.mode}, data layout ${data.layout}`;
  return (
    <Page title="Installation" sub={sub} actions={<AsCode name="GET /installation" input={{}} />}>
      {error === null ? null : error.status === 403 ? (
        <Empty title="You have no right to see the installation">
          <p>{error.message}</p>
        </Empty>
      ) : (
        <Failure message={error.message} requestId={error.requestId} retry={retry} />
      )}
      {data === undefined && error === null ? <Loading what="the installation" /> : null}
      {data === undefined || error?.status === 403 ? null : <Parts shown={data} />}
    </Page>
  );
}

function Parts({ shown }: { shown: Shown }): ReactElement {
  // During an upgrade an API of the previous release may answer, without versions and replicas of pools.
  const { versions = [], pools, workers, processes, shards, redis, warnings } = shown;
  return (
    <>
      {warnings.map(({ message, action }) => (
        <div className="note is-warn" key={message}>
          <Icon name="warn" />
          <div>
            <p>{message}</p>
            <p className="small">{action}</p>
          </div>
        </div>
      ))}
      <PartPanel title="Redis" part="redis" shown={shown}>
        {redis === null ? null : <Servers redis={redis} />}
      </PartPanel>
      <Panel title="Versions">{versions.length === 0 ? <p className="panel-body muted">None.</p> : <Versions versions={versions} />}</Panel>
      <PartPanel title="Delivery pools" part={pools === null ? 'workers' : 'pools'} shown={shown}>
        {pools === null || pools.length === 0 ? null : <Pools pools={pools} />}
      </PartPanel>
      <PartPanel title="Workers" part="workers" shown={shown} total={workers?.total}>
        {workers === null || workers.data.length === 0 ? null : <Workers workers={workers.data} />}
      </PartPanel>
      <PartPanel title="Shards" part="shards" shown={shown} total={shards?.total}>
        {shards === null ? null : <Shards shards={shards.data} />}
      </PartPanel>
      <PartPanel title="Processes" part="processes" shown={shown} total={processes?.total}>
        {processes === null ? null : (
          <Table
            label="Processes"
            rows={processes.data.map(({ role, address, version, layout, connectedSeconds }) => ({
              Role: role,
              Address: address,
              Version: version ?? unknown,
              'Data layout': layout,
              'Connected for': duration(connectedSeconds * 1000),
            }))}
          />
        )}
      </PartPanel>
    </>
  );
}

interface PartPanelProps {
  title: string;
  part: Part;
  shown: Shown;
  total?: number | undefined;
  children: ReactNode;
}

/** A part of the installation, or why it is not there. */
function PartPanel({ title, part, shown, total, children }: PartPanelProps): ReactElement {
  const unread = shown.unread.find((each) => each.part === part);
  return (
    <Panel title={title} hint={total === undefined ? undefined : count(total)}>
      {unread === undefined ? null : <p className="panel-body muted">{unread.reason}</p>}
      {children ?? (unread === undefined ? <p className="panel-body muted">None.</p> : null)}
    </Panel>
  );
}

function Servers({ redis: { mode, servers } }: { redis: NonNullable<Shown['redis']> }): ReactElement {
  const rows = servers.map(({ address, version, usedBytes, limitBytes, evictionPolicy, appendOnly, snapshotAt, replicas }) => ({
    Server: address,
    Version: version,
    Mode: mode,
    Memory: memory(usedBytes, limitBytes),
    'Eviction policy': evictionPolicy,
    'Append-only file': appendOnly ? 'on' : 'off',
    'Last snapshot': snapshotAt === null ? 'never' : <Ago at={snapshotAt} />,
    Replicas: count(replicas),
  }));
  return <Table label="Redis" rows={rows} numbers={['Replicas']} />;
}

function Versions({ versions }: { versions: Shown['versions'] }): ReactElement {
  const rows = versions.map(({ version, workers, processes }) => ({
    Version: version ?? unknown,
    Workers: workers === null ? '–' : count(workers),
    Processes: processes === null ? '–' : processes.map(({ role, processes: number }) => `${count(number)} ${role}`).join(', ') || 'None',
  }));
  return <Table label="Versions" rows={rows} />;
}

function Pools({ pools }: { pools: NonNullable<Shown['pools']> }): ReactElement {
  const rows = pools.map(({ name, workers, slots, replicas = null, conditions = null }) => ({
    Pool: name,
    Workers: count(workers),
    'Attempts at a time': count(slots),
    'Replicas wanted': replicas === null ? '–' : count(replicas.wanted),
    'Replicas ready': replicas === null ? '–' : count(replicas.ready),
    Conditions: conditions === null ? '–' : <Conditions conditions={conditions} />,
  }));
  return <Table label="Delivery pools" rows={rows} numbers={['Workers', 'Attempts at a time', 'Replicas wanted', 'Replicas ready']} />;
}

type Condition = NonNullable<NonNullable<Shown['pools']>[number]['conditions']>[number];

/** Each with its status; one that is not True with its message. */
function Conditions({ conditions }: { conditions: readonly Condition[] }): ReactElement {
  return (
    <>
      {conditions.map(({ type, status, reason, message }) => (
        <div key={type}>
          {type}: {status}
          {status === 'True' ? null : <span className="small muted"> {message === '' ? reason : `${reason}: ${message}`}</span>}
        </div>
      ))}
    </>
  );
}

function memory(usedBytes: number, limitBytes: number | null): string {
  if (limitBytes === null) return `${bytes(usedBytes)}, no limit`;
  return `${bytes(usedBytes)} of ${bytes(limitBytes)} (${percent(usedBytes / limitBytes)})`;
}

function Workers({ workers }: { workers: NonNullable<Shown['workers']>['data'] }): ReactElement {
  const rows = workers.map(({ id, pool, version, isAlive, slots, lastSeenAt }) => ({
    Worker: <span className="mono">{id}</span>,
    Pool: pool,
    Version: version ?? unknown,
    State: isAlive ? <State state="healthy" word="Alive" /> : <State state="failed" word={lastSeenAt === null ? 'Ended' : 'Silent'} />,
    'Attempts at a time': slots === null ? '–' : count(slots),
    'Last heartbeat': lastSeenAt === null ? '–' : <Ago at={lastSeenAt} />,
  }));
  return <Table label="Workers" rows={rows} numbers={['Attempts at a time']} />;
}

function Shards({ shards }: { shards: NonNullable<Shown['shards']>['data'] }): ReactElement {
  const rows = shards.map(({ shard, unfinished, retriesWaiting, scheduled, processing, deadLetters, outboxEntries }) => ({
    Shard: shard,
    Unfinished: count(unfinished),
    'Waiting for a retry': count(retriesWaiting),
    Scheduled: count(scheduled),
    Processing: count(processing),
    'Dead letters': count(deadLetters),
    Outbox: count(outboxEntries),
  }));
  const numbers = ['Unfinished', 'Waiting for a retry', 'Scheduled', 'Processing', 'Dead letters', 'Outbox'];
  return <Table label="Shards" rows={rows} numbers={numbers} />;
}

interface TableProps {
  label: string;
  /** Cells by the title of their column. */
  rows: readonly Record<string, ReactNode>[];
  /** Titles of the columns with numbers. */
  numbers?: readonly string[];
}

function Table({ label, rows, numbers = [] }: TableProps): ReactElement {
  const classOf = (title: string): string | undefined => (numbers.includes(title) ? 'num' : undefined);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="table-wrap" tabIndex={0} aria-label={label}>
      <table className="table is-stack">
        <thead>
          <tr>
            {Object.keys(rows[0] ?? {}).map((title) => (
              <th key={title} scope="col" className={classOf(title)}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a row has no state
            <tr key={at}>
              {Object.entries(cells).map(([title, cell]) => (
                <td key={title} className={classOf(title)} data-label={title}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
