import { hashFields } from '../shard/hash-fields.ts';
import { groupOfId, groupOfTarget } from './period-counts.ts';
import { DeliveryStatistics, openedBucket, retriedBucket } from './statistics.ts';
import { tallyField } from './statistics-sums.ts';

/** Counts of one step of a series, or of all. */
export class SeriesPoint {
  /** Events that a source or the organization accepted, that a route let through, or messages made for webhook endpoints. */
  events = 0;
  duplicates = 0;
  filtered = 0;
  readonly statistics = new DeliveryStatistics();
  readonly #samples = new Map<number, { count: number; sum: number }>();
  #oldestAgeMs = 0;

  /** Adds samples of the backlog of a shard. `sum`: of the samples. */
  addSamples(shard: number, { count, sum, oldestAgeMs }: BacklogSamples): void {
    const before = this.#samples.get(shard) ?? { count: 0, sum: 0 };
    this.#samples.set(shard, { count: before.count + count, sum: before.sum + sum });
    this.#oldestAgeMs = Math.max(this.#oldestAgeMs, oldestAgeMs);
  }

  /** The mean of the samples; null: there is none. */
  get backlog(): number | null {
    if (this.#samples.size === 0) return null;
    return [...this.#samples.values()].reduce((mean, { count, sum }) => mean + sum / count, 0);
  }

  /** The highest age of the oldest that has waited; null: there is no sample, or nothing has waited. */
  get oldestAgeMs(): number | null {
    return this.#oldestAgeMs === 0 ? null : this.#oldestAgeMs;
  }
}

/** Samples of a period in a shard (`../queue/sample-backlogs.lua`). */
export interface BacklogSamples {
  count: number;
  sum: number;
  oldestAgeMs: number;
}

/** Subject of a list of numbers (`../queue/includes/statistics.lua`), and so its part of a point. */
export type Part = 'target' | 'webhookTarget' | 'heldBack' | 'source' | 'route' | 'routeOfAll' | 'routeOfSource' | 'eventsOfAll';

export function addPart(point: SeriesPoint, part: Part, numbers: readonly number[]): void {
  const [first = 0, second = 0, third = 0, ...rest] = numbers;
  switch (part) {
    case 'target':
      point.statistics.addRecord(numbers);
      return;
    case 'webhookTarget':
      point.statistics.addRecord([first, second, 0, ...rest]);
      point.events += third;
      return;
    case 'heldBack':
      point.filtered += first;
      return;
    case 'source':
      point.events += first;
      point.duplicates += second;
      return;
    case 'route':
      point.events += first;
      point.filtered += second;
      point.statistics.failed += third;
      return;
    case 'routeOfAll':
      point.filtered += second;
      point.statistics.failed += third;
      return;
    case 'routeOfSource':
      point.filtered += second;
      return;
    case 'eventsOfAll':
      point.events += first;
      point.duplicates += second;
      point.filtered += third;
      return;
  }
}

const { tally } = hashFields;
const positions: Readonly<Record<string, number>> = {
  [tally.delivered]: 0,
  [tally.deliveredInBatch]: 0,
  [tally.events]: 0,
  [tally.failed]: 1,
  [tally.heldBack]: 1,
  [tally.moved]: 2,
  [tally.made]: 2,
  [tally.unsent]: 2,
  [tally.durationMs]: 3,
};
const beyondBuckets: Readonly<Record<string, number>> = { [tally.retried]: retriedBucket, [tally.circuitOpenings]: openedBucket };

/** The list that a field of a tally (`../shard/includes/count.lua`) becomes when it is folded, and the field it becomes part of. */
export function talliedNumbers(field: string, count: number): { id: string; numbers: number[] } {
  const [, id = '', what = '', bucket = ''] = tallyField.exec(field) ?? [];
  const numbers = [0, 0, 0, 0];
  const position = positions[what];
  if (position !== undefined) numbers[position] = count;
  const pair = bucket === '' ? beyondBuckets[what] : Number(bucket);
  if (pair !== undefined) numbers.push(pair, count);
  return { id, numbers };
}

/** Selects the statistics of a shard that belong to a series. */
export interface SeriesScope {
  /** Fields of a period. */
  fields: ReadonlyMap<string, Part>;
  /** The part of a field of a tally; undefined: the field does not belong to the series. */
  partOfTallied(id: string): Part | undefined;
  /** Groups of tallies; undefined: all. */
  groups?: ReadonlySet<string>;
}

const number = /^\d+$/;
const heldBackMark = '!filtered';
const numberWithHeldBack = /^\d+!filtered$/;

export const scopeOfAll: SeriesScope = {
  fields: new Map([
    ['*', 'target'],
    ['*e', 'eventsOfAll'],
  ]),
  partOfTallied: (id) => (number.test(id) ? 'target' : id.startsWith('src_') ? 'source' : 'routeOfAll'),
};

export const scopeOfAllWebhooks: SeriesScope = {
  fields: webhookFields('*'),
  partOfTallied: (id) => (number.test(id) ? 'webhookTarget' : numberWithHeldBack.test(id) ? 'heldBack' : undefined),
};

/** Returns the scope of an application with these targets. */
export function scopeOfApplication(id: string, targets: ReadonlySet<string>): SeriesScope {
  const { partOfTallied } = scopeOfAllWebhooks;
  return {
    fields: webhookFields(`*${id}`),
    partOfTallied: (field) => (targets.has(field.split('!')[0] ?? '') ? partOfTallied(field) : undefined),
  };
}

export function scopeOfEndpoint(target: string): SeriesScope {
  return { ...scopeOfFields(webhookFields(target)), groups: new Set([groupOfTarget(target)]) };
}

/** `targets`: those of the routes; null: of the routes only what their filters have excluded. */
export function scopeOfSource(id: string, routeIds: readonly string[], targets: readonly string[] | null): SeriesScope {
  const part = targets === null ? 'routeOfSource' : 'routeOfAll';
  return scopeOfFields(
    new Map<string, Part>([
      [id, 'source'],
      ...routeIds.map((route) => [route, part] as const),
      ...(targets ?? []).map((target) => [target, 'target'] as const),
    ]),
  );
}

/** Returns the scope of a route, or without one of a destination. */
export function scopeOfTargets(targets: readonly string[], routeId?: string): SeriesScope {
  const route = routeId === undefined ? [] : [[routeId, 'route'] as const];
  return scopeOfFields(new Map<string, Part>([...targets.map((target) => [target, 'target'] as const), ...route]));
}

/** Fields that have the same name in a tally. */
function scopeOfFields(fields: ReadonlyMap<string, Part>): SeriesScope {
  const groups = [...fields.keys()].map((field) => (number.test(field) ? groupOfTarget(field) : groupOfId(field)));
  return { fields, partOfTallied: (id) => fields.get(id), groups: new Set(groups) };
}

function webhookFields(name: string): Map<string, Part> {
  return new Map([
    [name, 'webhookTarget'],
    [name + heldBackMark, 'heldBack'],
  ]);
}
