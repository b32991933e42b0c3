import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import type { Answer, ApiError } from '../api/client.ts';
import { useOrganization, useRead } from '../app/use-api.ts';
import { count } from '../ui/format.ts';
import { Panel } from '../ui/panel.tsx';
import { Ago, Countdown } from '../ui/time.tsx';
import { utc } from './cron-days.ts';

const maxShown = 10;
const everyMs = 30_000;

type Job = Answer<'GET /cron'>['cronJobs'][number];

export interface FailingJobs {
  jobs: Job[];
  isLoading: boolean;
  error: ApiError | null;
  refetch: () => void;
}

/** Active cron jobs whose last run failed; of the first thousand. */
export function useFailingJobs(): FailingJobs {
  const { data, isLoading, error, refetch } = useRead('GET /cron', { query: { isActive: true } }, { everyMs });
  return {
    jobs: data?.cronJobs.filter(({ lastRunStatus }) => lastRunStatus === 'failed') ?? [],
    isLoading,
    error,
    refetch: () => void refetch(),
  };
}

/** When each of them failed, and runs again. */
export function FailingCronJobs({ jobs }: { jobs: readonly Job[] }): ReactElement | null {
  const org = useOrganization();
  if (jobs.length === 0) return null;
  return (
    <Panel
      title="Failed cron jobs"
      hint="by their last run"
      end={
        <Link className="small" to="/o/$org/cron" params={{ org }}>
          {jobs.length > maxShown ? `${count(jobs.length)} of all cron jobs` : 'All cron jobs'}
        </Link>
      }
      isRegion
    >
      <div className="table-wrap">
        <table className="table is-stack">
          <thead>
            <tr>
              <th scope="col">Job</th>
              <th scope="col" className="num">
                Failed
              </th>
              <th scope="col" className="num">
                Next run in
              </th>
            </tr>
          </thead>
          <tbody>
            {jobs.slice(0, maxShown).map(({ id, name, lastRunAt, nextRunAt }) => (
              <tr key={id}>
                <td className="grow">
                  <Link className="name" to="/o/$org/cron" params={{ org }} search={{ at: id }}>
                    {name}
                  </Link>
                </td>
                <td className="num" data-label="Failed">
                  {lastRunAt === null ? '–' : <Ago at={utc(lastRunAt)} />}
                </td>
                <td className="num" data-label="Next run in">
                  {nextRunAt === null ? '–' : <Countdown at={utc(nextRunAt)} />}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
