import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactElement, useCallback } from 'react';
import type { Answer } from '../api/client.ts';
import { AsCode } from '../app/as-code.tsx';
import { createCommand } from '../app/create-command.ts';
import { ListScreen } from '../app/list-screen.tsx';
import { Page } from '../app/page.tsx';
import { useOrganization, usePages, useRead } from '../app/use-api.ts';
import { Drawer } from '../ui/drawer.tsx';
import { count } from '../ui/format.ts';
import { Empty, Failure } from '../ui/notices.tsx';
import type { Column } from '../ui/rows.tsx';
import { State } from '../ui/state.tsx';
import { Ago } from '../ui/time.tsx';
import { isUnderWay, type Replay, ReplayActs, ReplayProgress } from './replay-parts.tsx';

const columns: readonly Column<Replay>[] = [
  { title: 'State', cell: ({ phase }) => <State state={phase.toLowerCase()} /> },
  { title: 'Replay', className: 'grow', cell: ({ id, name }) => <ReplayLink id={id} name={name} /> },
  { title: 'What', className: 'p3 muted', cell: ({ what, dryRun }) => (dryRun ? `${what}, dry run` : what) },
  { title: 'Planned', className: 'num p2', cell: ({ plan }) => (plan === null ? <span className="dim">–</span> : count(plan.candidates)) },
  { title: 'Queued', className: 'num', cell: ({ queued }) => count(queued) },
  { title: 'Failed', className: 'num', cell: ({ failed }) => count(failed) },
  { title: 'Rate', className: 'num p3 muted', cell: ({ ratePerSecond }) => `${count(ratePerSecond)}/s` },
  { title: 'Created', className: 'p2 muted', cell: ({ createdAt }) => <Ago at={createdAt} /> },
];
const keyOf = ({ id }: Replay): string => id;
const rowsOf = ({ data }: Answer<'GET /replays'>): Replay[] => data;

/** What is being sent again, and what was? */
export function Replays(): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const search = useSearch({ from: '/o/$org/replays' });
  const list = usePages('GET /replays', {}, rowsOf);
  const open = useCallback((id: string) => void navigate({ to: '/o/$org/replays/$id', params: { org, id } }), [navigate, org]);
  return (
    <Page title="Replays" actions={<AsCode name="GET /replays" input={{}} />} isFull>
      <ListScreen
        what="replays"
        list={list}
        columns={columns}
        keyOf={keyOf}
        fields={[]}
        search={search}
        open={open}
        drawer={(id, close) => <ReplayDrawer key={id} id={id} onClose={close} />}
        empty={
          <Empty
            title="No replay yet"
            command={createCommand(org, '/replays', '{"what": "deliveries", "filter": {"status": ["dlq"]}, "dryRun": true}')}
          >
            <p>
              A replay sends again what failed, by filter. It counts before it sends. The{' '}
              <Link to="/o/$org/dead-letters" params={{ org }}>
                dead letters
              </Link>{' '}
              screen plans one.
            </p>
          </Empty>
        }
      />
    </Page>
  );
}

function ReplayLink({ id, name }: { id: string; name: string }): ReactElement {
  const org = useOrganization();
  return (
    <Link className="name" to="/o/$org/replays/$id" params={{ org, id }} title={id}>
      {name}
    </Link>
  );
}

function ReplayDrawer({ id, onClose }: { id: string; onClose: () => void }): ReactElement {
  const org = useOrganization();
  const { data: replay, error } = useRead('GET /replays/{id}', { path: { id } }, { everyMs: 2000 });
  return (
    <Drawer
      label="Selected replay"
      onClose={onClose}
      head={
        <>
          {replay === undefined ? null : <State state={replay.phase.toLowerCase()} isPill />}
          <strong>{replay?.name}</strong>
          <span className="spacer" />
          <Link className="btn is-sm" to="/o/$org/replays/$id" params={{ org, id }}>
            Open report
          </Link>
        </>
      }
      foot={replay !== undefined && isUnderWay(replay) ? <ReplayActs replay={replay} /> : undefined}
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} />}
      {replay === undefined ? null : (
        <section>
          <ReplayProgress replay={replay} />
        </section>
      )}
    </Drawer>
  );
}
