import { z } from 'zod';
import type { ConnectedProcess } from '../../../data/membership/connected-processes.ts';
import type { KnownWorkers } from '../../../data/membership/worker-directory.ts';
import type { Warning } from './installation-warnings.ts';

const count = z.int().min(0);

export const runningVersion = z.object({
  version: z.string().nullable().describe('Version of Posthorn; null: unknown.'),
  workers: count.nullable().describe('Delivery workers that live and run it; null: the workers could not be read.'),
  processes: z
    .array(
      z.object({
        role: z.string().describe('Role of the processes.'),
        processes: count.describe('Processes of the role that are connected to Redis and run it.'),
      }),
    )
    .nullable()
    .describe('Connected processes that run it, by role; null: the processes could not be read.'),
});

type RunningVersion = z.input<typeof runningVersion>;

/** The latest first, the unknown one last. Null: what could not be read. */
export function versionsOf(workers: KnownWorkers | null, processes: readonly ConnectedProcess[] | null): RunningVersion[] {
  const byVersion = Map.groupBy(processes ?? [], ({ version }) => version);
  const known = new Set([...(workers?.versions ?? []).map(({ version }) => version), ...byVersion.keys()]);
  return [...known].sort(latestFirst).map((version) => ({
    version,
    workers: workers === null ? null : (workers.versions.find((each) => each.version === version)?.workers ?? 0),
    processes: processes === null ? null : byRole(byVersion.get(version) ?? []),
  }));
}

function byRole(processes: readonly ConnectedProcess[]): { role: string; processes: number }[] {
  const roles = Map.groupBy(processes, ({ role }) => role);
  return [...roles].map(([role, { length }]) => ({ role, processes: length })).sort((one, other) => (one.role < other.role ? -1 : 1));
}

const byNumbers = new Intl.Collator('en', { numeric: true });

function latestFirst(one: string | null, other: string | null): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  const [[release = '', ...candidate], [otherRelease = '', ...otherCandidate]] = [one.split('-'), other.split('-')];
  const order = byNumbers.compare(otherRelease, release);
  if (order !== 0) return order;
  // A release comes after its candidates.
  if (candidate.length === 0 || otherCandidate.length === 0) return candidate.length - otherCandidate.length;
  return byNumbers.compare(otherCandidate.join('-'), candidate.join('-'));
}

/** Reports that several versions run. */
export function versionWarnings(versions: readonly RunningVersion[]): Warning[] {
  const running = versions.flatMap(({ version, workers, processes }) => {
    // Workers are counted as such.
    const others = (processes ?? []).filter(({ role }) => workers === null || role !== 'delivery');
    const parts = [
      ...(workers === null || workers === 0 ? [] : [`workers: ${workers}`]),
      ...others.map(({ role, processes: number }) => `${role}: ${number}`),
    ];
    return parts.length === 0 ? [] : [`${version ?? 'an unknown version'} (${parts.join(', ')})`];
  });
  if (running.length < 2) return [];
  return [
    {
      part: 'processes',
      message: `Several versions of Posthorn run: ${running.join('; ')}.`,
      action: 'Finish the rollout of all roles. Releases that do not report their version are shown as unknown.',
    },
  ];
}
