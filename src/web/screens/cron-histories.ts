import type { Answer } from '../api/client.ts';
import { utc } from './cron-days.ts';

/** The API has no more of a job. */
export const maxRunsPerJob = 100;

type Execution = Answer<'GET /cron/{id}/executions'>['executions'][number];

export interface PastJob {
  id: string;
  name: string;
}

export interface PastRun {
  job: PastJob;
  at: string;
  status: Execution['status'];
}

export interface FrequentRun {
  job: PastJob;
  total: number;
  failed: number;
  /** There were more than the API still has. */
  isAtLeast: boolean;
}

/** What is known of runs in a time. */
export interface KnownRuns {
  runs: PastRun[];
  /** Jobs with more runs than `perJob`. */
  often: FrequentRun[];
  /** Before this time runs are missing; null: none is. */
  knownFrom: string | null;
}

export interface PastSpan {
  from: string;
  to: string;
  perJob: number;
}

/** The runs of a job that are still there. */
export interface History {
  job: PastJob;
  executions: readonly Pick<Execution, 'started_at' | 'status'>[];
}

/** Which times histories cover: a full one reaches back to its oldest run only. */
export function knownRuns(histories: readonly History[], { from, to, perJob }: PastSpan): KnownRuns {
  const ofJobs = histories.map(({ job, executions }) => {
    const all = executions.map(({ started_at, status }): PastRun => ({ job, at: new Date(utc(started_at)).toISOString(), status }));
    const runs = all.filter(({ at }) => at >= from && at < to);
    const oldest = all.map(({ at }) => at).toSorted()[0] ?? '';
    return { job, runs, knownFrom: all.length >= maxRunsPerJob && oldest > from ? oldest : null };
  });
  const knownFrom = ofJobs
    .flatMap((each) => each.knownFrom ?? [])
    .toSorted()
    .at(-1);
  return {
    runs: ofJobs.flatMap(({ runs }) => (runs.length <= perJob ? runs : [])),
    often: ofJobs
      .filter(({ runs }) => runs.length > perJob)
      .map(({ job, runs, knownFrom: since }) => ({
        job,
        total: runs.length,
        failed: runs.filter(({ status }) => status === 'failed').length,
        isAtLeast: since !== null,
      })),
    knownFrom: knownFrom ?? null,
  };
}
