import type { Clock } from '../../core/clock.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { groupOfTarget, readCounts, type Tally } from '../analytics/period-counts.ts';
import type { SeriesPeriods } from '../analytics/series-periods.ts';
import { scopeOfAllWebhooks, scopeOfApplication, scopeOfEndpoint } from '../analytics/series-scope.ts';
import { chartPeriods, type StatisticsRange } from '../analytics/statistics-periods.ts';
import {
  matchingTargets,
  maxTargets,
  readSeries,
  type Series,
  type ShardSubject,
  type Waiting,
  waitingAt,
} from '../analytics/statistics-series.ts';
import { tallyField } from '../analytics/statistics-sums.ts';
import { decodeAttempt } from '../shard/attempt-record.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { AttemptView } from '../shard/messages.ts';
import { recordId } from '../shard/record-key.ts';
import { type ShardKeys, shardKeys } from '../shard/shard-keys.ts';
import { type FailingEndpoint, fieldsOf, type WebhookFigures, WebhookFiguresSum } from './webhook-figures.ts';

/** Subject of the statistics. */
export type FiguresSubject =
  | { type: 'organization' }
  | { type: 'application'; id: string; shard: number }
  | { type: 'endpoint'; id: string; applicationId: string; shard: number };

/** The same of series, which deleted applications and endpoints have as long as there are figures. */
export type WebhookSeriesSubject = FiguresSubject | { type: 'deletedApplication'; id: string } | { type: 'deletedEndpoint'; id: string };

/** An endpoint with the shard of its application. */
interface PlacedEndpoint {
  id: string;
  applicationId: string;
  shard: number;
}

/** What stands for the subject in a shard: its name there, and for an endpoint the group of its tallies. */
interface Place {
  keys: ShardKeys;
  name: string;
  group?: string;
}

interface Scored {
  keys: ShardKeys;
  target: string;
  failedAttempts: number;
}

const maxFailing = 10;
/** Targets of a period that are read, those with the most failed attempts. */
const failingRead = { ofOrganization: 200, ofApplication: 1000 };
const targetsAtOnce = 200;
const everything = '*';
const targetOfField = /^(\d+)(.*)$/;

export interface WebhookStatisticsOptions {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  /** How many there are. */
  shards?: () => number;
}

/** The analytics of messages to webhook endpoints: sums that stand ready, however many endpoints there are (`../queue/includes/webhook-statistics.lua`). */
export class WebhookStatistics {
  readonly #options: WebhookStatisticsOptions;

  constructor(options: WebhookStatisticsOptions) {
    this.#options = options;
  }

  /** `org` is the real organization. Throws UNAVAILABLE. */
  async figures(org: string, subject: FiguresSubject, range: StatisticsRange): Promise<WebhookFigures> {
    const internal = webhookOrganization(org);
    const chart = chartPeriods(range, this.#options.clock.now());
    const sum = new WebhookFiguresSum(chart);
    const places = await this.#places(internal, subject).catch(throwUnavailable);
    const scored = await Promise.all(places.map((place) => this.#addPlace(internal, place, chart, sum)));
    if (subject.type === 'endpoint') {
      const { id: endpointId, applicationId } = subject;
      const { failedAttempts } = sum;
      return sum.figures(failedAttempts === 0 ? [] : [{ applicationId, endpointId, failedAttempts }]);
    }
    return sum.figures(await this.#failing(scored.flat(), subject).catch(throwUnavailable));
  }

  /** `org` is the real organization. Throws UNAVAILABLE. */
  async series(org: string, subject: WebhookSeriesSubject, periods: SeriesPeriods): Promise<Series> {
    const { redis } = this.#options;
    const internal = webhookOrganization(org);
    const places = await this.#places(internal, subject).catch(throwUnavailable);
    const subjects = await Promise.all(
      places.map(async ({ keys, name, group }): Promise<ShardSubject> => {
        if (group !== undefined) return { keys, scope: scopeOfEndpoint(name), targets: [name], sampled: [name] };
        if (subject.type !== 'application' && subject.type !== 'deletedApplication')
          return {
            keys,
            scope: scopeOfAllWebhooks,
            targets: await matchingTargets(redis, keys, internal, '*', { max: maxTargets }),
            sampled: [name],
          };
        const targets = await matchingTargets(redis, keys, internal, `${subject.id} *`);
        return { keys, scope: scopeOfApplication(subject.id, new Set(targets)), targets, sampled: [name] };
      }),
    );
    const series = await readSeries(redis, internal, subjects, periods);
    // A deleted endpoint without a target: nothing tells its figures from those of others.
    return subjects.length === 0 && subject.type === 'deletedEndpoint' ? { ...series, hasDeliveries: false, waiting: null } : series;
  }

  /** Returns the backlog of an endpoint. Throws UNAVAILABLE. */
  async waiting(org: string, endpoint: PlacedEndpoint): Promise<Waiting> {
    const number = await this.#numberOf(org, endpoint);
    const targets = number === null ? [] : [number];
    return await waitingAt(this.#options.redis, this.#in(endpoint.shard), targets).catch(throwUnavailable);
  }

  /** The newest attempts at an endpoint as far as they are kept, at most ten. Throws UNAVAILABLE. */
  async newestAttempts(org: string, { id, applicationId, shard }: PlacedEndpoint): Promise<(AttemptView & { messageId: string })[]> {
    const { redis } = this.#options;
    const keys = this.#in(shard);
    const number = await this.#numberOf(org, { id, applicationId, shard });
    const noted = number === null ? null : await redis.get(keys.newestAttempts(number)).catch(throwUnavailable);
    if (noted === null) return [];
    const attempts = await Promise.all(
      noted.split(' ').map(async (each) => {
        const [message = '', attempt = ''] = each.split('/');
        const stored = (await redis.hget(keys.attempts(message), attempt)) ?? (await redis.hget(keys.message(message), attempt));
        const view = stored === null ? null : decodeAttempt(Number(attempt), stored);
        return view === null ? [] : [{ ...view, messageId: recordId('msg_', shard, message) }];
      }),
    ).catch(throwUnavailable);
    return attempts.flat();
  }

  /** The number of its target; null: it has had no message yet. */
  async #numberOf(org: string, { id, applicationId, shard }: PlacedEndpoint): Promise<string | null> {
    const keys = this.#in(shard);
    return await this.#options.redis.hget(keys.targetNumbers(webhookOrganization(org)), `${applicationId} ${id}`).catch(throwUnavailable);
  }

  async #places(internal: string, subject: WebhookSeriesSubject): Promise<Place[]> {
    const { redis } = this.#options;
    if (subject.type === 'organization') return this.#all().map((keys) => ({ keys, name: everything }));
    // In which shard they were is not kept.
    if (subject.type === 'deletedApplication') return this.#all().map((keys) => ({ keys, name: everything + subject.id }));
    if (subject.type === 'deletedEndpoint') {
      const found = this.#all().map(async (keys) => {
        const names = await matchingTargets(redis, keys, internal, `* ${subject.id}`);
        return names.map((name) => ({ keys, name, group: groupOfTarget(name) }));
      });
      return (await Promise.all(found)).flat();
    }
    const keys = this.#in(subject.shard);
    if (subject.type === 'application') return [{ keys, name: everything + subject.id }];
    const name = await redis.hget(keys.targetNumbers(internal), `${subject.applicationId} ${subject.id}`);
    return name === null ? [] : [{ keys, name, group: groupOfTarget(name) }];
  }

  /** Adds what a shard knows; answers its targets with failed attempts, those that matter. */
  async #addPlace(
    internal: string,
    { keys, name, group }: Place,
    { names, beginMs }: { names: readonly string[]; beginMs: number },
    sum: WebhookFiguresSum,
  ): Promise<Scored[]> {
    const { redis } = this.#options;
    const wanted = { periods: names, fields: fieldsOf(name), fromMs: beginMs, ...(group !== undefined && { groups: new Set([group]) }) };
    let unfinished: string | null = null;
    const { periods, tallies } = await readCounts(redis, keys, internal, wanted, async () => {
      unfinished = await redis.hget(keys.unfinished(internal), name);
    });
    periods.forEach((period, i) => {
      for (const [field, packed] of Object.entries(period)) sum.addRecord(i, field.slice(name.length), packed);
    });
    const isOf = await this.#members(keys, name, tallies).catch(throwUnavailable);
    const failed = new Map<string, number>();
    for (const { atMs, target, detail, ...counted } of talliedTargets(tallies)) {
      if (!isOf(target)) continue;
      sum.addTallied(atMs, detail, counted);
      if (detail.startsWith(':')) failed.set(target, (failed.get(target) ?? 0) + counted.count);
    }
    sum.addUnfinished(Number(unfinished ?? 0), await this.#underWay(internal, keys, name).catch(throwUnavailable));
    if (group !== undefined) return [];
    const most = name === everything ? failingRead.ofOrganization : failingRead.ofApplication;
    const ranked = await Promise.all(
      names.map((period) => redis.zrange(keys.failing(internal, period), '0', String(most - 1), 'REV', 'WITHSCORES')),
    ).catch(throwUnavailable);
    for (const scores of ranked) {
      for (let i = 0; i + 1 < scores.length; i += 2) {
        const target = scores[i] ?? '';
        failed.set(target, (failed.get(target) ?? 0) + Number(scores[i + 1]));
      }
    }
    return [...failed].map(([target, failedAttempts]) => ({ keys, target, failedAttempts }));
  }

  /** Says which targets of tallies belong to a name. */
  async #members(keys: ShardKeys, name: string, tallies: readonly Tally[]): Promise<(target: string) => boolean> {
    if (name === everything) return () => true;
    if (!name.startsWith(everything)) return (target) => target === name;
    const targets = [...new Set(talliedTargets(tallies).map(({ target }) => target))];
    const members = new Set<string>();
    for (const { target, routeId } of await this.#targets(keys, targets)) if (everything + routeId === name) members.add(target);
    return (target) => members.has(target);
  }

  /** What workers hold is no more than their slots. */
  async #underWay(internal: string, keys: ShardKeys, name: string): Promise<number> {
    const held = await this.#options.redis.zrange(keys.held, '0', '-1');
    const perTarget = Map.groupBy(held, (member) => targetOfField.exec(member)?.[1] ?? '');
    const numbers = [...perTarget.keys()];
    const isEndpoint = !name.startsWith(everything);
    const targets = await this.#targets(keys, isEndpoint ? numbers.filter((number) => number === name) : numbers);
    return targets
      .filter(({ org, routeId }) => org === internal && (isEndpoint || name === everything || everything + routeId === name))
      .reduce((sum, { target }) => sum + (perTarget.get(target)?.length ?? 0), 0);
  }

  async #failing(scored: readonly Scored[], subject: FiguresSubject): Promise<FailingEndpoint[]> {
    const ranked = scored.toSorted((one, other) => other.failedAttempts - one.failedAttempts);
    const found: FailingEndpoint[] = [];
    for (let first = 0; first < ranked.length && found.length < maxFailing; first += targetsAtOnce) {
      const step = ranked.slice(first, first + targetsAtOnce);
      const targets = await Promise.all(step.map(async ({ keys, target }) => (await this.#targets(keys, [target]))[0]));
      for (const [i, target] of targets.entries()) {
        if (target === undefined || (subject.type === 'application' && target.routeId !== subject.id)) continue;
        found.push({ applicationId: target.routeId, endpointId: target.destinationId, failedAttempts: step[i]?.failedAttempts ?? 0 });
      }
    }
    return found.slice(0, maxFailing);
  }

  /** Those that are there. */
  async #targets(keys: ShardKeys, numbers: readonly string[]) {
    const { organization, route, destination } = hashFields.target;
    const found: { target: string; org: string; routeId: string; destinationId: string }[] = [];
    for (let first = 0; first < numbers.length; first += targetsAtOnce) {
      const step = numbers.slice(first, first + targetsAtOnce);
      const read = await Promise.all(
        step.map((number) => this.#options.redis.hmget(keys.target(number), organization, route, destination)),
      );
      read.forEach(([org, routeId, destinationId], i) => {
        const target = step[i] ?? '';
        if (org != null && routeId != null && destinationId != null) found.push({ target, org, routeId, destinationId });
      });
    }
    return found;
  }

  #all(): ShardKeys[] {
    const { shards = () => 1 } = this.#options;
    return Array.from({ length: shards() }, (_, shard) => this.#in(shard));
  }

  #in(shard: number): ShardKeys {
    return shardKeys(this.#options.prefix, shard);
  }
}

function talliedTargets(tallies: readonly Tally[]) {
  return tallies.flatMap(({ atMs, fields }) =>
    [...fields].flatMap(([field, count]) => {
      const [, id = '', what = '', bucket = ''] = tallyField.exec(field) ?? [];
      const [, target, detail = ''] = targetOfField.exec(id) ?? [];
      return target === undefined ? [] : [{ atMs, target, detail, what, bucket, count: Number(count) }];
    }),
  );
}
