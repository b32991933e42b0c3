import { invalidParameter } from '../../core/errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { unpackNumbers } from '../shard/packed-numbers.ts';
import { integer, list } from '../shard/script-reply.ts';
import type { ShardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { readBacklogSamples } from './backlog-samples.ts';
import { readCounts } from './period-counts.ts';
import type { SeriesPeriods } from './series-periods.ts';
import { addPart, SeriesPoint, type SeriesScope, talliedNumbers } from './series-scope.ts';

const backlogsScript = new ShardScript(new URL('./target-backlogs.lua', import.meta.url));
const targetsPerScript = 200;
const targetsPerScan = 1000;
/** Most targets of a shard; a larger series omits the backlog. */
export const maxTargets = 10_000;
/** Most fields that are read in a shard for the periods of an answer: about 5 MB. */
export const maxFieldsRead = 50_000;
/** Number of fields from which on a period takes a turn of its own. */
const fieldsPerTurn = 50;

export interface Series {
  beginMs: number;
  endMs: number;
  stepMs: number;
  /** One per step, in their order. */
  points: readonly SeriesPoint[];
  /** Sum of all steps. */
  total: SeriesPoint;
  /** False of what is deleted and forgotten, of a source whose routes are not known, or with so many targets that their figures are not read: all but its events and what filters have excluded is missing. */
  hasDeliveries: boolean;
  /** Current backlog; null without deliveries, and where there are very many targets. */
  waiting: Waiting | null;
}

export interface Waiting {
  /** Messages that have not ended; a batch that is tried again is one. */
  messages: number;
  /** Creation of the oldest message in a lane; retries that are not due are in none. Null: no message is. */
  oldestAtMs: number | null;
  /** Scheduled for a later time; not part of the others. */
  scheduled: number;
}

/** Scope of a series of events and their deliveries. */
export type SeriesSubject =
  | { type: 'organization' }
  /** `routeIds`: what takes from the source; null: not known, so that the series has no deliveries. */
  | { type: 'source'; id: string; routeIds: readonly string[] | null }
  /** `isDeleted`: its targets are forgotten some day, and then the series has no deliveries. */
  | { type: 'route' | 'destination'; id: string; isDeleted?: boolean };

/** Data of one shard about the subject of a series. */
export interface ShardSubject {
  keys: ShardKeys;
  scope: SeriesScope;
  /** Numbers of its targets; null: their figures are not read. */
  targets: readonly string[] | null;
  /** Names under which what waits is sampled. */
  sampled: readonly string[];
}

/** Throws UNAVAILABLE, and INVALID_QUERY where it would be too much. `org` is the one for webhooks where the subjects are. */
export async function readSeries(
  redis: RedisClient,
  org: string,
  subjects: readonly ShardSubject[],
  { beginMs, endMs, stepMs, names, lengthMs }: SeriesPeriods,
): Promise<Series> {
  const fieldsRead = Math.max(0, ...subjects.map(({ scope, sampled }) => Math.max(scope.fields.size, sampled.length) * names.length));
  if (fieldsRead > maxFieldsRead)
    throw invalidParameter(
      'from',
      `begins a range that is too long for a resource with so many routes or destinations: ask for a part of it, or for larger steps`,
    );
  const points = Array.from({ length: (endMs - beginMs) / stepMs }, () => new SeriesPoint());
  const total = new SeriesPoint();
  const at = (ms: number): SeriesPoint[] => [points[Math.floor((ms - beginMs) / stepMs)], total].filter((point) => point !== undefined);
  const waiting = await Promise.all(
    subjects.map(async ({ keys, scope, targets, sampled }) => {
      const { fields, groups, partOfTallied } = scope;
      const wanted = { periods: names, fields: [...fields.keys()], fromMs: beginMs, ...(groups !== undefined && { groups }) };
      const counts = await readCounts(redis, keys, org, wanted);
      for (const [i, period] of counts.periods.entries()) {
        const stored = Object.entries(period);
        for (const [field, packed] of stored) {
          const part = fields.get(field);
          const numbers = unpackNumbers(packed);
          if (part !== undefined) for (const point of at(beginMs + i * lengthMs)) addPart(point, part, numbers);
        }
        // Requests of others go in between.
        if (stored.length >= fieldsPerTurn) await new Promise((resolve) => setImmediate(resolve));
      }
      for (const tally of counts.tallies) {
        if (tally.atMs >= endMs) continue;
        for (const [field, count] of tally.fields) {
          const { id, numbers } = talliedNumbers(field, Number(count));
          const part = partOfTallied(id);
          if (part !== undefined) for (const point of at(tally.atMs)) addPart(point, part, numbers);
        }
      }
      const samples = sampled.length === 0 ? [] : await readBacklogSamples(redis, keys, { org, names, fields: sampled });
      for (const [i, each] of samples.entries())
        if (each !== null) for (const point of at(beginMs + i * lengthMs)) point.addSamples(keys.shard, each);
      return targets === null || targets.length > maxTargets ? null : await waitingAt(redis, keys, targets).catch(throwUnavailable);
    }),
  );
  const hasDeliveries = subjects.every(({ targets }) => targets !== null);
  return { beginMs, endMs, stepMs, points, total, hasDeliveries, waiting: waitingOfAll(waiting) };
}

/** Numbers of the targets whose `<route> <destination>` a glob pattern matches and that are wanted; about as many as `max` where there are more. Throws UNAVAILABLE. */
export async function matchingTargets(
  redis: RedisClient,
  keys: ShardKeys,
  org: string,
  pattern: string,
  { max = Number.POSITIVE_INFINITY, isWanted = () => true }: { max?: number; isWanted?: (target: string) => boolean } = {},
): Promise<string[]> {
  const found = new Set<string>();
  for (let cursor = '0'; ; ) {
    const scan = redis.hscan(keys.targetNumbers(org), cursor, 'MATCH', pattern, 'COUNT', targetsPerScan);
    const [next, entries] = await scan.catch(throwUnavailable);
    for (let i = 0; i + 1 < entries.length; i += 2) if (isWanted(entries[i] ?? '')) found.add(entries[i + 1] ?? '');
    if (next === '0' || found.size > max) return [...found];
    cursor = next;
  }
}

/** Backlog at targets of a shard, by their numbers. */
export async function waitingAt(redis: RedisClient, keys: ShardKeys, targets: readonly string[]): Promise<Waiting> {
  const steps: Waiting[] = [];
  for (let first = 0; first < targets.length; first += targetsPerScript) {
    const [backlog, oldest, scheduled] = list(
      await backlogsScript.run(redis, keys.declared, targets.slice(first, first + targetsPerScript)),
    );
    steps.push({ messages: integer(backlog), oldestAtMs: typeof oldest === 'number' ? oldest : null, scheduled: integer(scheduled) });
  }
  return sumOf(steps);
}

function waitingOfAll(shards: readonly (Waiting | null)[]): Waiting | null {
  const known = shards.filter((each) => each !== null);
  return known.length < shards.length ? null : sumOf(known);
}

function sumOf(all: readonly Waiting[]): Waiting {
  const oldest = all.flatMap(({ oldestAtMs }) => (oldestAtMs === null ? [] : [oldestAtMs]));
  return {
    messages: all.reduce((sum, { messages }) => sum + messages, 0),
    oldestAtMs: oldest.length === 0 ? null : Math.min(...oldest),
    scheduled: all.reduce((sum, { scheduled }) => sum + scheduled, 0),
  };
}
