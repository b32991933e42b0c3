import { unpackNumbers } from './packed-numbers.ts';
import { fields, list, text } from './script-reply.ts';
import { DeliveryStatistics, type TargetStatistics } from './statistics.ts';

/** What a shard has counted in a range. */
export interface Counts {
  /** Hashes of periods as `includes/statistics.lua` describes them. */
  periods: readonly Record<string, Buffer>[];
  /** Hashes of tallies as `includes/count.lua` describes them. */
  tallies: readonly ReadonlyMap<string, string>[];
}

const tallyPeriodMs = 300_000;
/** Field of a period that is the number of a target; the others are ids. */
const targetNumber = /^\d+$/;
const tallyField = /^(\S+) ([a-z])(\d*)$/;

/** From the reply of `tallies.lua` those of the range. */
export function talliesFrom(reply: readonly unknown[], beginMs: number): ReadonlyMap<string, string>[] {
  return reply.flatMap((tally) => {
    const [period, hash] = list(tally);
    return Number(text(period)) * tallyPeriodMs >= beginMs ? [fields(hash)] : [];
  });
}

export class StatisticsSums {
  readonly total = new DeliveryStatistics();
  readonly events = new Map<string, number>();
  readonly filtered = new Map<string, number>();
  readonly duplicates = new Map<string, number>();
  readonly unsent = new Map<string, number>();

  /** Adds a period of a shard to the sums and to its targets, which are given by number. */
  addPeriod(period: Record<string, Buffer>, targets: ReadonlyMap<string, TargetStatistics>): void {
    for (const [field, packed] of Object.entries(period)) this.#addRecord(field, unpackNumbers(packed), this.#statisticsOf(targets));
  }

  /** The same of a tally. */
  addTally(tally: ReadonlyMap<string, string>, targets: ReadonlyMap<string, TargetStatistics>): void {
    for (const [field, count] of tally) this.#addCount(field, Number(count), this.#statisticsOf(targets));
  }

  #statisticsOf(targets: ReadonlyMap<string, TargetStatistics>): (number: string) => DeliveryStatistics[] {
    return (number) => [this.total, targets.get(number)?.statistics].filter((each) => each !== undefined);
  }

  #heldBack(id: string): Map<string, number> {
    return id.startsWith('src_') ? this.duplicates : this.filtered;
  }

  #addUnsent(route: string, count: number): void {
    addTo(this.unsent, route, count);
    this.total.failed += count;
  }

  #addRecord(field: string, numbers: readonly number[], of: (number: string) => DeliveryStatistics[]): void {
    const [first = 0, second = 0, third = 0, fourth = 0] = numbers;
    if (!targetNumber.test(field)) {
      addTo(this.events, field, first);
      addTo(this.#heldBack(field), field, second);
      this.#addUnsent(field, third);
      return;
    }
    for (const statistics of of(field)) {
      statistics.delivered += first;
      statistics.failed += second;
      statistics.movedAway += third;
      statistics.latencySumMs += fourth;
      for (let i = 4; i + 1 < numbers.length; i += 2) statistics.latencies.add(numbers[i] ?? 0, numbers[i + 1] ?? 0);
    }
  }

  #addCount(field: string, count: number, of: (number: string) => DeliveryStatistics[]): void {
    const [, id = '', what = '', bucket = ''] = tallyField.exec(field) ?? [];
    if (what === 'e') addTo(this.events, id, count);
    else if (what === 'x') addTo(this.#heldBack(id), id, count);
    else if (what === 'u') this.#addUnsent(id, count);
    else {
      for (const statistics of of(id)) {
        if (what === 'd' || what === 'o') statistics.delivered += count;
        if (what === 'f') statistics.failed += count;
        if (what === 'm') statistics.movedAway += count;
        if (what === 's') statistics.latencySumMs += count;
        if (bucket !== '') statistics.latencies.add(Number(bucket), count);
      }
    }
  }
}

function addTo(sums: Map<string, number>, id: string, count: number): void {
  if (count > 0) sums.set(id, (sums.get(id) ?? 0) + count);
}
