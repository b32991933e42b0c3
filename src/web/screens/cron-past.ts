import { useQueries } from '@tanstack/react-query';
import { type Answer, type ApiError, call } from '../api/client.ts';
import { useOrganization, useRead } from '../app/use-api.ts';
import { utc } from './cron-days.ts';

/** Jobs whose runs are read. */
export const pastJobsAtMost = 30;
/** The API has no more of a job. */
const runsPerJob = 100;
const everyMs = 60_000;

type Execution = Answer<'GET /cron/{id}/executions'>['executions'][number];

export interface PastJob {
  id: string;
  name: string;
}

export interface PastRun {
  job: PastJob;
  at: string;
  status: Execution['status'];
  responseStatus: number | null;
}

export interface PastRuns {
  runs: PastRun[];
  /** Jobs with more runs than `perJob`. */
  often: { job: PastJob; total: number; failed: number }[];
  error: ApiError | null;
  isLoading: boolean;
  /** There are more jobs than are read. */
  isCut: boolean;
}

export interface PastOptions {
  from: string;
  to: string;
  perJob: number;
  isEnabled: boolean;
}

/** The runs of the first jobs that began between two times, as far as their histories reach. */
export function usePastRuns({ from, to, perJob, isEnabled }: PastOptions): PastRuns {
  const organization = useOrganization();
  const list = useRead('GET /cron', { query: { pageSize: 100 } }, { everyMs, isEnabled });
  const jobs = isEnabled ? (list.data?.cronJobs ?? []) : [];
  const read = jobs.slice(0, pastJobsAtMost);
  const answers = useQueries({
    queries: read.map(({ id }) => ({
      queryKey: [organization, 'GET /cron/{id}/executions', { path: { id }, query: { limit: runsPerJob } }],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call('GET /cron/{id}/executions', { path: { id }, query: { limit: runsPerJob } }, { organization, signal }),
      refetchInterval: everyMs,
    })),
  });
  const ofJobs = read.map((job, index): PastRun[] =>
    (answers[index]?.data?.executions ?? []).flatMap((run) => {
      const at = new Date(utc(run.started_at)).toISOString();
      return at >= from && at < to ? [{ job, at, status: run.status, responseStatus: run.response_status }] : [];
    }),
  );
  const failed = (runs: readonly PastRun[]): number => runs.filter(({ status }) => status === 'failed').length;
  return {
    runs: ofJobs.filter((runs) => runs.length <= perJob).flat(),
    often: ofJobs.flatMap((runs) => {
      const [first] = runs;
      return first === undefined || runs.length <= perJob ? [] : [{ job: first.job, total: runs.length, failed: failed(runs) }];
    }),
    error: list.error,
    isLoading: list.isLoading || answers.some(({ isLoading }) => isLoading),
    isCut: jobs.length > read.length,
  };
}
