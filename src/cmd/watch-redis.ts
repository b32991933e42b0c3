import { Gauge, type Registry } from 'prom-client';
import { isPosthornError } from '../core/errors.ts';
import { mastersOf } from '../redis/connection.ts';
import { readinessReporter } from './readiness-reporter.ts';
import type { RedisLink } from './redis-link.ts';
import { checkRedisSettings } from './redis-settings.ts';
import type { RoleContext } from './role-process.ts';

type Context = Pick<RoleContext, 'clock' | 'registry' | 'logger' | 'readiness' | 'stopping'>;

const lookMs = 30_000;

/** The gauge of `watchRedis`. */
export function clockSkewMetric(registry: Registry): Gauge {
  return new Gauge({
    name: 'posthorn_clock_skew_seconds',
    help: 'Clock of the process minus clock of Redis; of a Cluster, that of the primary with the largest difference.',
    registers: [registry],
  });
}

/**
 * Checks every 30 seconds the clock of Redis and, with `settings`, what `checkRedisSettings` requires, until the process stops: both may change
 * while it runs. Settings that would lose data make the process not ready.
 */
export async function watchRedis(link: RedisLink, context: Context, { settings }: { settings: boolean }): Promise<void> {
  const { clock, registry, logger, readiness, stopping } = context;
  const skew = clockSkewMetric(registry);
  const report = readinessReporter({ logger, readiness }, { check: 'redis-settings', message: 'Redis has settings that would lose data' });
  while (!stopping.aborted) {
    try {
      skew.set(await skewSeconds(link, context));
      if (settings) report(await settingsComplaint(link));
    } catch (error) {
      // The connection reports that Redis does not answer.
      logger.debug({ err: error }, 'clock and settings of Redis cannot be read');
    }
    await clock.sleep(lookMs, stopping);
  }
}

/** Rejects when Redis does not answer. */
async function skewSeconds({ main }: RedisLink, { clock }: Context): Promise<number> {
  const skews = await Promise.all(
    mastersOf(main).map(async (server) => {
      const beforeMs = clock.now();
      const [seconds, microseconds] = await server.time();
      return (beforeMs + clock.now()) / 2000 - (Number(seconds) + Number(microseconds) / 1_000_000);
    }),
  );
  return skews.reduce((largest, each) => (Math.abs(each) > Math.abs(largest) ? each : largest), 0);
}

async function settingsComplaint({ main }: RedisLink): Promise<string | null> {
  try {
    await checkRedisSettings(main, { warn: () => {} });
    return null;
  } catch (error) {
    if (isPosthornError(error, 'INVALID_CONFIG')) return error.message;
    throw error;
  }
}
