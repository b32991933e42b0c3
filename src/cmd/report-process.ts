import { hostname } from 'node:os';
import type { Registry } from 'prom-client';
import { maxClockSkewSeconds } from '../core/clock-skew.ts';
import { type ProcessReport, ProcessReports } from '../data/membership/process-reports.ts';
import type { RedisLink } from './redis-link.ts';
import type { RoleContext } from './role-process.ts';

const everyMs = 10_000;

/**
 * Reports to operators every 10 seconds, until the process stops, what is wrong with it: checks of `/readyz` that have failed for 10 seconds, clocks that differ,
 * resources that are not Ready. A process without problems writes nothing. The next report replaces one that failed.
 */
export async function reportProcess(
  link: RedisLink,
  { config, clock, logger, registry, readiness, stopping }: RoleContext,
  role: ProcessReport['role'],
): Promise<void> {
  const reports = new ProcessReports({ redis: link.main, prefix: config.redisKeyPrefix });
  const process = { role, host: hostname() };
  let failedBefore: ReadonlySet<string> = new Set();
  let isReported = false;
  for (;;) {
    await clock.sleep(everyMs, stopping);
    if (stopping.aborted) return;
    try {
      const failing = Object.entries(readiness.report().checks).filter(([, { ok }]) => !ok);
      const lasting = failing.filter(([name]) => failedBefore.has(name));
      failedBefore = new Set(failing.map(([name]) => name));
      const report: ProcessReport = {
        ...process,
        failingChecks: Object.fromEntries(lasting.map(([name, { detail }]) => [name, detail ?? 'not ready'])),
        redisClockSkewSeconds: await shownValue(registry, 'posthorn_clock_skew_seconds'),
        apiServerClockSkewSeconds: await shownValue(registry, 'posthorn_api_server_clock_skew_seconds'),
        notReadyObjects: await notReadyObjects(registry),
      };
      if (hasNews(report)) await reports.write(report);
      else if (isReported) await reports.remove(process);
      isReported = hasNews(report);
    } catch (error) {
      logger.debug({ err: error }, 'the state of the process was not reported to the API');
    }
  }
}

function hasNews({ failingChecks, redisClockSkewSeconds, apiServerClockSkewSeconds, notReadyObjects: objects }: ProcessReport): boolean {
  const skews = [redisClockSkewSeconds ?? 0, apiServerClockSkewSeconds ?? 0];
  return (
    [failingChecks, objects].some((each) => Object.keys(each).length > 0) || skews.some((skew) => Math.abs(skew) > maxClockSkewSeconds)
  );
}

interface Sample {
  labels: Partial<Record<string, string | number>>;
  value: number;
}

async function samplesOf(registry: Registry, name: string): Promise<Sample[]> {
  return (await registry.getSingleMetric(name)?.get())?.values ?? [];
}

async function shownValue(registry: Registry, name: string): Promise<number | null> {
  return (await samplesOf(registry, name))[0]?.value ?? null;
}

async function notReadyObjects(registry: Registry): Promise<Record<string, number>> {
  const samples = await samplesOf(registry, 'posthorn_objects');
  return Object.fromEntries(
    samples.flatMap(({ labels: { kind, state }, value }) => (state === 'not_ready' && value > 0 ? [[String(kind), value]] : [])),
  );
}
