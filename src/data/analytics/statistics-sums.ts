import { hashFields } from '../shard/hash-fields.ts';
import { unpackNumbers } from '../shard/packed-numbers.ts';
import { DeliveryStatistics, type TargetStatistics } from './statistics.ts';

/** Field of a period that is the number of a target; the others are ids, and sums of an organization. */
const targetNumber = /^\d+$/;
const sumMark = '*';
/** An id, what is counted, and the bucket of a latency or nothing. */
export const tallyField = /^(\S+) ([a-z])(\d*)$/;

export class StatisticsSums {
  readonly total = new DeliveryStatistics();
  readonly events = new Map<string, number>();
  readonly filtered = new Map<string, number>();
  readonly duplicates = new Map<string, number>();
  readonly unsent = new Map<string, number>();

  /** Adds a period of a shard to the sums and to its targets, which are given by number. */
  addPeriod(period: Record<string, Buffer>, targets: ReadonlyMap<string, TargetStatistics>): void {
    for (const [field, packed] of Object.entries(period))
      if (!field.startsWith(sumMark)) this.#addRecord(field, unpackNumbers(packed), this.#statisticsOf(targets));
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
    const [first = 0, second = 0, third = 0] = numbers;
    if (!targetNumber.test(field)) {
      addTo(this.events, field, first);
      addTo(this.#heldBack(field), field, second);
      this.#addUnsent(field, third);
      return;
    }
    for (const statistics of of(field)) statistics.addRecord(numbers);
  }

  #addCount(field: string, count: number, of: (number: string) => DeliveryStatistics[]): void {
    const [, id = '', what = '', bucket = ''] = tallyField.exec(field) ?? [];
    if (what === hashFields.tally.events) addTo(this.events, id, count);
    else if (what === hashFields.tally.heldBack) addTo(this.#heldBack(id), id, count);
    else if (what === hashFields.tally.unsent) this.#addUnsent(id, count);
    else for (const statistics of of(id)) statistics.addTallied(what, bucket, count);
  }
}

function addTo(sums: Map<string, number>, id: string, count: number): void {
  if (count > 0) sums.set(id, (sums.get(id) ?? 0) + count);
}
