import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import type { Answer, ApiError } from '../api/client.ts';
import { AsCode } from '../app/as-code.tsx';
import { DeleteAct } from '../app/delete-act.tsx';
import { ManifestLink } from '../app/manifest/manifest-link.tsx';
import { Page } from '../app/page.tsx';
import { beginOf, type Range, rangeOf, ranges } from '../app/range.ts';
import { EditLink } from '../app/resource-form/form-links.tsx';
import { type RowOf, useCursorList, useOrganization, useRead } from '../app/use-api.ts';
import { shortId } from '../ui/format.ts';
import { Failure, Loading } from '../ui/notices.tsx';
import { Panel } from '../ui/panel.tsx';
import { Segments } from '../ui/segments.tsx';
import { Code, State } from '../ui/state.tsx';
import { Ago, Clock, useNow } from '../ui/time.tsx';
import { DestinationEffect, EndpointEffect } from './delete-effects.tsx';
import { MessageState } from './message-state.tsx';
import { RotateSecret } from './rotate-secret.tsx';
import { SeriesCharts } from './series-charts.tsx';
import { endpointState, isEndpointId, targetWord } from './target-data.ts';
import { DestinationFacts, DestinationState, EndpointFacts } from './target-facts.tsx';
import { DestinationSwitch, EndpointSwitch } from './target-switch.tsx';
import { TestSend } from './test-send.tsx';

const everyMs = 10_000;
const rowsShown = 20;

/** One target: how it does, what waits for it, and what was sent to it. */
export function Target(): ReactElement {
  const { id } = useParams({ from: '/o/$org/targets/$id' });
  return isEndpointId(id) ? <EndpointPage key={id} id={id} /> : <DestinationPage key={id} id={id} />;
}

function DestinationPage({ id }: { id: string }): ReactElement {
  const toList = useToList();
  const range = rangeOf(useSearch({ from: '/o/$org/targets/$id' }).range);
  const { data, error, refetch } = useRead('GET /destinations/{id}', { path: { id } }, { everyMs });
  return (
    <Page
      title={data?.name ?? shortId(id)}
      crumbs={<Crumb />}
      sub={data === undefined ? undefined : <DestinationState destination={data} />}
      actions={
        <>
          <RangeChoice range={range} />
          <TestSend id={id} />
          <AsCode name="GET /destinations/{id}" input={{ path: { id } }} />
          <ManifestLink id={id} />
          <EditLink family="destinations" id={id} />
          {data === undefined ? null : <DestinationSwitch id={id} name={data.name} enabled={data.enabled} />}
          {data === undefined ? null : (
            <DeleteAct family="destinations" id={id} noun="destination" name={data.name} updatedAt={data.updatedAt} onDeleted={toList}>
              <DestinationEffect id={id} />
            </DeleteAct>
          )}
        </>
      }
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      {data === undefined ? (
        error === null ? (
          <Loading what="the destination" />
        ) : null
      ) : (
        <>
          <DestinationCharts id={id} range={range} />
          <div className="panel target-facts">
            <DestinationFacts destination={data} />
          </div>
          <Deliveries destinationId={id} />
        </>
      )}
    </Page>
  );
}

function EndpointPage({ id }: { id: string }): ReactElement {
  const range = rangeOf(useSearch({ from: '/o/$org/targets/$id' }).range);
  const { data: answer, error, refetch } = useRead('GET /webhook-endpoints/{id}', { path: { id } }, { everyMs });
  const endpoint = answer?.data;
  const toList = useToList();
  return (
    <Page
      title={endpoint?.url ?? shortId(id)}
      crumbs={<Crumb />}
      sub={endpoint === undefined ? undefined : <State state={endpointState(endpoint)} word={targetWord(endpointState(endpoint))} isPill />}
      actions={
        <>
          <RangeChoice range={range} />
          <TestSend id={id} />
          <AsCode name="GET /webhook-endpoints/{id}" input={{ path: { id } }} />
          <ManifestLink id={id} />
          <EditLink family="endpoints" id={id} />
          {endpoint === undefined ? null : <RotateSecret id={id} signing={endpoint} />}
          {endpoint === undefined ? null : <EndpointSwitch endpoint={endpoint} />}
          {endpoint === undefined ? null : (
            <DeleteAct family="webhook-endpoints" id={id} noun="endpoint" updatedAt={endpoint.updatedAt} onDeleted={toList}>
              <EndpointEffect id={id} subscriptionCount={endpoint.subscriptionCount} />
            </DeleteAct>
          )}
        </>
      }
    >
      {error === null ? null : <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />}
      {endpoint === undefined ? (
        error === null ? (
          <Loading what="the endpoint" />
        ) : null
      ) : (
        <>
          <EndpointCharts id={id} range={range} />
          <div className="panel target-facts">
            <EndpointFacts endpoint={endpoint} />
          </div>
          <Messages endpointId={id} />
        </>
      )}
    </Page>
  );
}

/** Leaves the page of what is no more. */
function useToList(): () => void {
  const org = useOrganization();
  const navigate = useNavigate();
  return () => void navigate({ to: '/o/$org/targets', params: { org }, replace: true });
}

function Crumb(): ReactElement {
  const org = useOrganization();
  return (
    <Link to="/o/$org/targets" params={{ org }}>
      Targets
    </Link>
  );
}

function DestinationCharts({ id, range }: { id: string; range: Range }): ReactElement {
  const query = { ...useSteps(range), destinationId: id };
  const { data, error, refetch } = useRead('GET /analytics/series', { query }, { everyMs });
  return <Charts series={data} range={range} error={error} retry={() => void refetch()} />;
}

function EndpointCharts({ id, range }: { id: string; range: Range }): ReactElement {
  const query = { ...useSteps(range), endpointId: id };
  const { data, error, refetch } = useRead('GET /webhooks/analytics/series', { query }, { everyMs });
  return <Charts series={data?.data} range={range} error={error} retry={() => void refetch()} />;
}

function useSteps(range: Range): { from: string; step: string } {
  const now = useNow(60_000);
  return { from: beginOf(range, now), step: range.step };
}

interface ChartsProps {
  series: Answer<'GET /analytics/series'> | undefined;
  range: Range;
  error: ApiError | null;
  retry: () => void;
}

function Charts({ series, range, error, retry }: ChartsProps): ReactElement {
  if (series !== undefined) return <SeriesCharts series={series} range={range} />;
  return error === null ? <Loading what="the series" /> : <Failure message={error.message} requestId={error.requestId} retry={retry} />;
}

function RangeChoice({ range }: { range: Range }): ReactElement {
  const navigate = useNavigate();
  return (
    <Segments
      label="Time range"
      choices={ranges}
      value={range.value}
      onChange={(value) => void navigate({ to: '.', search: { range: value } as never, replace: true })}
    />
  );
}

function Deliveries({ destinationId }: { destinationId: string }): ReactElement {
  const org = useOrganization();
  const list = useCursorList('GET /deliveries', { destinationId: [destinationId] });
  return (
    <SentTable
      title="Deliveries"
      list={list}
      all={
        <Link className="small" to="/o/$org/deliveries" params={{ org }} search={{ destinationId }}>
          All deliveries
        </Link>
      }
      link={(id) => (
        <Link className="id" to="/o/$org/deliveries/$id" params={{ org, id }}>
          {shortId(id)}
        </Link>
      )}
      state={(status) => <State state={status} />}
    />
  );
}

function Messages({ endpointId }: { endpointId: string }): ReactElement {
  const org = useOrganization();
  const list = useCursorList('GET /outbound-messages', { endpointId: [endpointId] });
  return (
    <SentTable
      title="Messages"
      list={list}
      all={
        <Link className="small" to="/o/$org/messages" params={{ org }} search={{ endpointId }}>
          All messages
        </Link>
      }
      link={(id) => (
        <Link className="id" to="/o/$org/messages/$id" params={{ org, id }}>
          {shortId(id)}
        </Link>
      )}
      state={(status) => <MessageState status={status} />}
    />
  );
}

type Sent = RowOf<'GET /deliveries'> | RowOf<'GET /outbound-messages'>;

interface SentTableProps {
  title: string;
  list: { rows: readonly Sent[]; error: { message: string; requestId: string | null } | null; isLoading: boolean; refresh: () => void };
  all: ReactElement;
  link: (id: string) => ReactElement;
  state: (status: string) => ReactElement;
}

/** The newest of what was sent. */
function SentTable({ title, list, all, link, state }: SentTableProps): ReactElement {
  return (
    <Panel title={title} hint="newest first" end={all} isRegion>
      {list.error === null ? null : <Failure message={list.error.message} requestId={list.error.requestId} retry={list.refresh} />}
      {list.isLoading ? <Loading what={title.toLowerCase()} /> : null}
      {!list.isLoading && list.error === null && list.rows.length === 0 ? (
        <p className="panel-body muted">Nothing has been sent to this target.</p>
      ) : null}
      {list.rows.length === 0 ? null : (
        <div className="table-wrap">
          <table className="table">
            <thead>
              <tr>
                <th scope="col">Id</th>
                <th scope="col">State</th>
                <th scope="col">Code</th>
                <th scope="col" className="p2">
                  Last error
                </th>
                <th scope="col" className="num p2">
                  Attempts
                </th>
                <th scope="col" className="p3">
                  Next
                </th>
                <th scope="col" className="num p2">
                  Created
                </th>
              </tr>
            </thead>
            <tbody>
              {list.rows.slice(0, rowsShown).map((row) => (
                <tr key={row.id}>
                  <td>{link(row.id)}</td>
                  <td>{state(row.status)}</td>
                  <td>
                    <Code status={row.lastResponseStatus} />
                  </td>
                  <td className="p2 grow muted">{row.lastErrorMessage ?? ''}</td>
                  <td className="num p2">
                    {row.attempts} of {row.maxAttempts}
                  </td>
                  <td className="p3 muted">{row.nextAttemptAt === null ? '–' : <Clock at={row.nextAttemptAt} />}</td>
                  <td className="num p2">
                    <Ago at={row.createdAt} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}
