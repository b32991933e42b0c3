import type { Clock } from '../../core/clock.ts';
import { isPosthornError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { PoolReport, PoolReports } from '../../data/membership/pool-reports.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ResourceCache } from '../../store/cache.ts';
import { untilFilled } from './until-filled.ts';

const everyMs = 10_000;
/** Most pools that are reported, the first by name. */
const maxReported = 200;

export interface ReportPoolsOptions {
  /** Running. */
  cache: ResourceCache<'DeliveryPool'>;
  /** Where pools are. */
  namespace: string;
  reports: Pick<PoolReports, 'write'>;
  clock: Clock;
  logger: Logger;
}

/** Reports the DeliveryPools to the API every 10 seconds until the signal aborts. A report that fails is made up for by the next. */
export async function reportPools({ cache, namespace, reports, clock, logger }: ReportPoolsOptions, signal: AbortSignal): Promise<void> {
  await untilFilled([cache], clock, signal);
  while (!signal.aborted) {
    const pools = cache
      .list(namespace)
      .map(reportOf)
      .sort((one, other) => (one.name < other.name ? -1 : 1));
    try {
      await reports.write(pools.slice(0, maxReported));
    } catch (error) {
      if (!isPosthornError(error, 'UNAVAILABLE')) throw error;
      logger.debug({ err: error }, 'the delivery pools were not reported to the API');
    }
    await clock.sleep(everyMs, signal);
  }
}

function reportOf({ metadata, status }: PosthornObject<'DeliveryPool'>): PoolReport {
  const { desiredReplicas: wanted, readyReplicas: ready, conditions = [] } = status ?? {};
  return {
    name: metadata.name,
    replicas: wanted === undefined || ready === undefined ? null : { wanted, ready },
    conditions: conditions.map(({ type, status: is, reason, message, lastTransitionTime }) => ({
      type,
      status: is,
      reason,
      message,
      lastTransitionTime,
    })),
  };
}
