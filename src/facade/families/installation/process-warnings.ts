import { maxClockSkewSeconds } from '../../../core/clock-skew.ts';
import type { ProcessReport } from '../../../data/membership/process-reports.ts';
import type { Warning } from './installation-warnings.ts';

/** Remedy for a failing check of `/readyz`; absent: its reason is enough. */
const actions: Readonly<Record<string, string>> = {
  configuration: 'Check that a controller is the leader, and read its log: the leader publishes the resources.',
  crds: 'Apply the CustomResourceDefinitions of this release: the chart does with crds.install, else kubectl apply --server-side -f crds.',
  'redis-settings': 'Set maxmemory-policy noeviction.',
  bootstrap: 'Correct the values of the chart that the message names.',
};

/** Warnings from the reports of processes. */
export function reportWarnings(reports: readonly ProcessReport[], mode: 'standalone' | 'cluster'): Warning[] {
  return [...reports.flatMap(warningsOf), ...objectWarnings(reports, mode)];
}

function warningsOf({ role, host, failingChecks, redisClockSkewSeconds, apiServerClockSkewSeconds }: ProcessReport): Warning[] {
  const who = `${role} on ${host}`;
  const checks = Object.entries(failingChecks).map(
    ([check, reason]): Warning => ({
      part: 'processes',
      message: `The process ${who} is not ready: ${check}: ${reason.replace(/\.$/, '')}.`,
      action: actions[check] ?? 'Look at its log, and at the runbook of the alert PosthornNotReady.',
    }),
  );
  return [...checks, ...skewed(who, 'Redis', redisClockSkewSeconds), ...skewed(who, 'the API server', apiServerClockSkewSeconds)];
}

function skewed(who: string, server: string, seconds: number | null): Warning[] {
  if (seconds === null || Math.abs(seconds) <= maxClockSkewSeconds) return [];
  const direction = seconds > 0 ? 'ahead of' : 'behind';
  return [
    {
      part: 'processes',
      message: `The clock of ${who} is ${Math.round(Math.abs(seconds))} s ${direction} that of ${server}. Retries and cron jobs are early or late, and receivers refuse signatures.`,
      action: 'Synchronize the clocks of the machines: chronyc tracking, timedatectl.',
    },
  ];
}

/** The leader alone counts them; one that has just lost its leadership may have reported, too. */
function objectWarnings(reports: readonly ProcessReport[], mode: 'standalone' | 'cluster'): Warning[] {
  const counts = new Map<string, number>();
  for (const { notReadyObjects } of reports)
    for (const [kind, count] of Object.entries(notReadyObjects)) counts.set(kind, Math.max(count, counts.get(kind) ?? 0));
  if (counts.size === 0) return [];
  const named = [...counts].map(([kind, count]) => `${kind} ${count}`).sort();
  return [
    {
      part: 'resources',
      message: `Resources are not Ready: ${named.join(', ')}. What was in force before stays in force.`,
      action:
        mode === 'cluster'
          ? 'Their conditions give the reason: kubectl get posthorn -A.'
          : 'The pages of the resources give the reason, and the log has it.',
    },
  ];
}
