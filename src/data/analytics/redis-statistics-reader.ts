import type { Clock } from '../../core/clock.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { circuitStateOf } from '../queue/circuits.ts';
import { decodeAttempt } from '../shard/attempt-record.ts';
import { recordId } from '../shard/record-key.ts';
import { integer, list, text } from '../shard/script-reply.ts';
import { type ShardKeys, shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { readCounts } from './period-counts.ts';
import type { SeriesPeriods } from './series-periods.ts';
import { scopeOfAll, scopeOfSource, scopeOfTargets } from './series-scope.ts';
import { DeliveryStatistics, type FailedAttempt, type OrganizationStatistics, type TargetStatistics } from './statistics.ts';
import { periodsOf, rangeBeginMs, type StatisticsRange } from './statistics-periods.ts';
import {
  matchingTargets,
  maxFieldsRead,
  maxTargets,
  readSeries,
  type Series,
  type SeriesSubject,
  type ShardSubject,
} from './statistics-series.ts';
import { StatisticsSums } from './statistics-sums.ts';

const targetStatesScript = new ShardScript(new URL('./target-states.lua', import.meta.url));
const targetsPerStep = 200;

export interface RedisStatisticsReaderOptions {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  /** How many there are. */
  shards?: () => number;
}

/** For the analytics. Throws UNAVAILABLE when Redis does not answer. */
export class RedisStatisticsReader {
  readonly #options: RedisStatisticsReaderOptions;

  constructor(options: RedisStatisticsReaderOptions) {
    this.#options = options;
  }

  /** `failures`: with the newest failed attempts of each target. */
  async ofOrganization(
    org: string,
    range: StatisticsRange,
    { failures = false }: { failures?: boolean } = {},
  ): Promise<OrganizationStatistics> {
    const { clock, prefix, shards = () => 1 } = this.#options;
    const nowMs = clock.now();
    const sums = new StatisticsSums();
    const all = Array.from({ length: shards() }, (_, shard) => shardKeys(prefix, shard));
    const targets = await Promise.all(
      all.map(async (keys) => {
        const found = await this.#targets(keys, org, failures ? rangeBeginMs(range, nowMs) : null);
        const wanted = { periods: periodsOf(range, nowMs), fromMs: rangeBeginMs(range, nowMs) };
        const { periods, tallies } = await readCounts(this.#options.redis, keys, org, wanted);
        for (const period of periods) {
          sums.addPeriod(period, found);
          // A period of an organization with many targets takes a millisecond or two: requests of others go in between.
          if (Object.keys(period).length > 0) await new Promise((resolve) => setImmediate(resolve));
        }
        for (const { fields } of tallies) sums.addTally(fields, found);
        return [...found.values()];
      }),
    );
    return { targets: targets.flat(), ...sums };
  }

  /** INVALID_QUERY where the subject has so many parts that the range is too long. */
  async series(org: string, subject: SeriesSubject, periods: SeriesPeriods): Promise<Series> {
    const { redis, prefix, shards = () => 1 } = this.#options;
    const all = Array.from({ length: shards() }, (_, shard) => shardKeys(prefix, shard));
    const found = await Promise.all(all.map((keys) => this.#subjectIn(keys, org, subject, periods.names.length)));
    const isForgotten = 'isDeleted' in subject && subject.isDeleted === true && found.every(({ targets }) => targets?.length === 0);
    return readSeries(redis, org, isForgotten ? found.map((each) => ({ ...each, targets: null })) : found, periods);
  }

  async #subjectIn(keys: ShardKeys, org: string, subject: SeriesSubject, periods: number): Promise<ShardSubject> {
    const { redis } = this.#options;
    switch (subject.type) {
      case 'organization':
        return { keys, scope: scopeOfAll, targets: await matchingTargets(redis, keys, org, '* ?*', { max: maxTargets }), sampled: ['*'] };
      case 'source': {
        if (subject.routeIds === null) return { keys, scope: scopeOfSource(subject.id, [], null), targets: null, sampled: [] };
        const routeIds = new Set(subject.routeIds);
        const isWanted = (target: string): boolean => routeIds.has(target.slice(0, target.indexOf(' ')));
        const targets = await matchingTargets(redis, keys, org, '* ?*', { isWanted });
        const scope = scopeOfSource(subject.id, subject.routeIds, targets);
        if (scope.fields.size * periods <= maxFieldsRead) return { keys, scope, targets, sampled: targets };
        return { keys, scope: scopeOfSource(subject.id, subject.routeIds, null), targets: null, sampled: [] };
      }
      case 'route': {
        const targets = await matchingTargets(redis, keys, org, `${subject.id} *`);
        return { keys, scope: scopeOfTargets(targets, subject.id), targets, sampled: targets };
      }
      case 'destination': {
        const targets = await matchingTargets(redis, keys, org, `* ${subject.id}`);
        return { keys, scope: scopeOfTargets(targets), targets, sampled: targets };
      }
    }
  }

  /** By number. Failed attempts from `failuresFromMs` on (null: none). */
  async #targets(keys: ShardKeys, org: string, failuresFromMs: number | null): Promise<Map<string, TargetStatistics>> {
    const found = new Map<string, TargetStatistics>();
    for (let cursor = '0'; ; ) {
      const wanted = namedArgument({ org, cursor, maxLooks: targetsPerStep, withFailures: failuresFromMs !== null });
      const [next, targets] = list(await targetStatesScript.run(this.#options.redis, keys.declared, [wanted]).catch(throwUnavailable));
      for (const target of list(targets)) {
        const [number, routeId, destinationId, fresh, retries, circuit, failures, freshUnderWay, retriesUnderWay] = list(target);
        found.set(text(number), {
          routeId: text(routeId),
          destinationId: text(destinationId),
          statistics: new DeliveryStatistics(),
          fresh: integer(fresh),
          retries: integer(retries),
          underWay: { fresh: integer(freshUnderWay), retries: integer(retriesUnderWay) },
          circuit: circuitStateOf(text(circuit)),
          failures: list(failures)
            .flatMap((failure) => failedAttempt(keys.shard, failure))
            .filter(({ atMs }) => atMs >= (failuresFromMs ?? 0)),
        });
      }
      cursor = text(next);
      if (cursor === '0') return found;
    }
  }
}

/** Empty when the attempt's record cannot be read any more. */
function failedAttempt(shard: number, reply: unknown): FailedAttempt[] {
  const [key = '', number = '', stored = ''] = list(reply).map(text);
  const attempt = decodeAttempt(Number(number), stored);
  if (attempt === null) return [];
  const { startedAtMs, responseStatus, errorMessage } = attempt;
  return [{ messageId: recordId('msg_', shard, key), atMs: startedAtMs, responseStatus, errorMessage }];
}
