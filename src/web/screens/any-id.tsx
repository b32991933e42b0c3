import { Navigate, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { AsCode } from '../app/as-code.tsx';
import { Page } from '../app/page.tsx';
import { useOrganization, useRead } from '../app/use-api.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { Advice, ExplanationLine, Steps } from './explanation.tsx';

/** Lists whose drawer shows what has an id of this prefix. */
const lists = {
  src: '/o/$org/sources',
  rte: '/o/$org/routes',
  cron: '/o/$org/cron',
  nch: '/o/$org/channels',
  app: '/o/$org/applications',
  etp: '/o/$org/event-types',
} as const;
/** What the Lab opens. */
const labs = { flt: 'filter', trf: 'transform', sch: 'schema' } as const;
const details = { dst: '/o/$org/targets/$id', ep: '/o/$org/targets/$id', rep: '/o/$org/replays/$id' } as const;

/** Opens the screen of an id; without one, explains the id. */
export function AnyId(): ReactElement {
  const org = useOrganization();
  const { id } = useParams({ from: '/o/$org/id/$id' });
  const prefix = id.slice(0, Math.max(0, id.indexOf('_')));
  const list = Object.entries(lists).find(([each]) => each === prefix)?.[1];
  if (list !== undefined) return <Navigate to={list} params={{ org }} search={{ at: id }} replace />;
  const detail = Object.entries(details).find(([each]) => each === prefix)?.[1];
  if (detail !== undefined) return <Navigate to={detail} params={{ org, id }} replace />;
  const kind = Object.entries(labs).find(([each]) => each === prefix)?.[1];
  if (kind !== undefined) return <Navigate to="/o/$org/lab" params={{ org }} search={{ kind, id }} replace />;
  return <Explained id={id} />;
}

function Explained({ id }: { id: string }): ReactElement {
  const org = useOrganization();
  const input = { path: { id } };
  const { data, error, refetch } = useRead('GET /explain/{id}', input);
  // Deliveries and messages to endpoints have ids of one prefix; so have events of sources and events for endpoints.
  if (data?.kind === 'event') return <Navigate to="/o/$org/events/$id" params={{ org, id }} replace />;
  if (data?.kind === 'delivery') return <Navigate to="/o/$org/deliveries/$id" params={{ org, id }} replace />;
  if (data?.kind === 'outbound message') return <Navigate to="/o/$org/messages/$id" params={{ org, id }} replace />;
  return (
    <Page title={id} sub={data?.kind} actions={<AsCode name="GET /explain/{id}" input={input} />}>
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      {data === undefined ? (
        error === null ? (
          <Loading what="what became of it" />
        ) : null
      ) : (
        <>
          <ExplanationLine explanation={data} question="What became of it?" />
          <Steps story={data.story} />
          <Advice advice={data.advice} />
        </>
      )}
    </Page>
  );
}
