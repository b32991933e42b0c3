import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { ShardKeys } from '../shard/shard-keys.ts';

/** Counts of a shard for an organization in a range. */
export interface Counts {
  /** The requested ones in order: hashes as `../queue/includes/statistics.lua` describes them. */
  periods: readonly Record<string, Buffer>[];
  /** Deltas not part of these yet, as `../shard/includes/count.lua` describes them. */
  tallies: readonly Tally[];
}

export interface Tally {
  /** Begin of its five minutes. */
  atMs: number;
  fields: ReadonlyMap<string, string>;
}

export interface PeriodQuery {
  /** Names, as `statistics-periods.ts` gives them. */
  periods: readonly string[];
  /** Fields of a period; absent: all. */
  fields?: readonly string[];
  /** Tallies are of this time or later. */
  fromMs: number;
  /** Relevant fields; absent: all. */
  groups?: ReadonlySet<string>;
}

const tallyPeriodMs = 300_000;
/** How often a shard is read again if tallies were folded meanwhile, which might then count twice or not at all. */
const maxReads = 4;
const talliesAtOnce = 50;

/** Throws UNAVAILABLE. `also` reads what changes when tallies are folded, too. */
export async function readCounts(
  redis: RedisClient,
  keys: ShardKeys,
  org: string,
  { periods: names, fields, ...which }: PeriodQuery,
  also: () => Promise<unknown> = () => Promise.resolve(),
): Promise<Counts> {
  const folds = (): Promise<string | null> => redis.hget(keys.declared[0], hashFields.control.folds);
  for (let reads = 1; ; reads++) {
    const foldsBefore = await folds().catch(throwUnavailable);
    const tallies = await readTallies(redis, keys, org, which).catch(throwUnavailable);
    const [periods] = await Promise.all([
      Promise.all(names.map((name) => readPeriod(redis, keys.statistics(org, name), fields))),
      also(),
    ]).catch(throwUnavailable);
    if (reads === maxReads || (await folds().catch(throwUnavailable)) === foldsBefore) return { periods, tallies };
  }
}

async function readPeriod(redis: RedisClient, key: string, fields: readonly string[] | undefined): Promise<Record<string, Buffer>> {
  if (fields === undefined) return await redis.hgetallBuffer(key);
  if (fields.length === 0) return {};
  const values = await redis.hmgetBuffer(key, ...fields);
  return Object.fromEntries(fields.flatMap((field, i) => (values[i] == null ? [] : [[field, values[i]]])));
}

/** One by one: each is small, all of an organization need not be. */
async function readTallies(
  redis: RedisClient,
  keys: ShardKeys,
  org: string,
  { fromMs, groups }: Pick<PeriodQuery, 'fromMs' | 'groups'>,
): Promise<Tally[]> {
  const names = (await redis.smembers(keys.tallies(org))).flatMap((name) => {
    const [period = '', ofGroup = ''] = name.split(':');
    const atMs = Number(period) * tallyPeriodMs;
    return atMs >= fromMs && (groups === undefined || groups.has(ofGroup)) ? [{ name, atMs }] : [];
  });
  const tallies: Tally[] = [];
  for (let first = 0; first < names.length; first += talliesAtOnce) {
    const step = names.slice(first, first + talliesAtOnce);
    const read = await Promise.all(step.map(({ name }) => redis.hgetall(keys.tally(org, name))));
    tallies.push(...step.map(({ atMs }, i) => ({ atMs, fields: new Map(Object.entries(read[i] ?? {})) })));
  }
  return tallies;
}

const targetsPerGroup = 64;

/** Groups of tallies, as `../shard/includes/count.lua` describes them. */
export function groupOfTarget(number: string): string {
  return String(Math.floor(Number(number) / targetsPerGroup));
}

export function groupOfId(id: string): string {
  return `e${id.slice(-1)}`;
}
