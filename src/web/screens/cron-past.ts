import { useQuery } from '@tanstack/react-query';
import { ApiError, call } from '../api/client.ts';
import { retryRateLimited } from '../app/retry-rate-limited.ts';
import { useOrganization, useRead } from '../app/use-api.ts';
import { forEachAtOnce } from '../ui/at-once.ts';
import { type History, type KnownRuns, knownRuns, maxRunsPerJob, type PastJob, type PastSpan } from './cron-histories.ts';

/** Jobs whose runs are read. */
export const maxPastJobs = 30;
const everyMs = 60_000;
const atOnce = 4;

export interface PastRuns extends KnownRuns {
  error: ApiError | null;
  isLoading: boolean;
  /** There are more jobs than are read. */
  isCut: boolean;
  refetch: () => void;
}

/** The runs of the first jobs that began between two times, as far as their histories reach. */
export function usePastRuns({ isEnabled, ...span }: PastSpan & { isEnabled: boolean }): PastRuns {
  const organization = useOrganization();
  const list = useRead('GET /cron', { query: { pageSize: 100 } }, { everyMs, isEnabled });
  const jobs = isEnabled ? (list.data?.cronJobs ?? []) : [];
  const asked = jobs.slice(0, maxPastJobs).map(({ id, name }) => ({ id, name }));
  const histories = useQuery<History[], ApiError>({
    queryKey: [organization, 'GET /cron/{id}/executions', asked],
    queryFn: ({ signal }) => readHistories(organization, asked, signal),
    enabled: isEnabled && list.data !== undefined,
    refetchInterval: everyMs,
  });
  return {
    ...knownRuns(histories.data ?? [], span),
    error: list.error ?? histories.error,
    isLoading: list.isLoading || histories.isLoading,
    isCut: jobs.length > asked.length,
    refetch: () => {
      void list.refetch();
      void histories.refetch();
    },
  };
}

/** Some at a time, so that the calendar leaves the API to others, too. */
async function readHistories(organization: string, jobs: readonly PastJob[], signal: AbortSignal): Promise<History[]> {
  const found: History[] = [];
  const read = async (job: PastJob, index: number): Promise<void> => {
    const input = { path: { id: job.id }, query: { limit: maxRunsPerJob } };
    const { executions } = await retryRateLimited(() => call('GET /cron/{id}/executions', input, { organization, signal }), signal).catch(
      ofDeleted,
    );
    found[index] = { job, executions };
  };
  await forEachAtOnce(jobs, read, { atOnce, signal });
  return found;
}

/** A job that was deleted since the list was read has no history. */
function ofDeleted(thrown: unknown): { executions: [] } {
  if (thrown instanceof ApiError && thrown.status === 404) return { executions: [] };
  throw thrown;
}
