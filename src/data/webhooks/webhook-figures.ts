import { DeliveryStatistics } from '../analytics/statistics.ts';
import { deadLetterReasons } from '../history/message-view.ts';
import { errorTypeByLetter } from '../shard/attempt-record.ts';
import { hashFields } from '../shard/hash-fields.ts';
import type { AttemptErrorType, DeadLetterReason } from '../shard/messages.ts';
import { unpackNumbers } from '../shard/packed-numbers.ts';

/** Analytics of the messages to one endpoint, to all endpoints of an application, or to all of an organization. */
export interface WebhookFigures {
  /** Begin of the range. */
  beginMs: number;
  /** Messages that ended in the range, and their attempts. */
  statistics: DeliveryStatistics;
  /** Messages that have not ended, now, and how many of these are being attempted. */
  unfinished: number;
  underWay: number;
  /** Failed attempts. */
  errors: ReadonlyMap<AttemptErrorType, number>;
  deadLetters: ReadonlyMap<DeadLetterReason, number>;
  periods: readonly WebhookPeriod[];
  /** Those with the most failed attempts, at most ten. */
  failing: readonly FailingEndpoint[];
}

export interface WebhookPeriod {
  beginMs: number;
  delivered: number;
  failed: number;
  /** Messages that had not ended when the period did; of the last one: now. */
  unfinished: number;
}

export interface FailingEndpoint {
  applicationId: string;
  endpointId: string;
  failedAttempts: number;
}

/** As `../shard/includes/count.lua` counts what a transform has held back. */
const heldBack = 'filtered';
/** Reasons of ends that are counted neither as delivered nor as failed. */
const uncountedEnds: ReadonlySet<string> = new Set([heldBack, 'cancelled']);

/** Fields of a period that say something of a name (`../queue/includes/webhook-statistics.lua`). */
export function fieldsOf(name: string): string[] {
  return [name, ...errorFields(name), ...[...deadLetterReasons, heldBack].map((reason) => `${name}!${reason}`)];
}

function errorFields(name: string): string[] {
  return [...errorTypeByLetter.keys()].map((letter) => `${name}:${letter}`);
}

/** Adds up what shards have counted. */
export class WebhookFiguresSum {
  readonly #beginMs: number;
  readonly #lengthMs: number;
  readonly #statistics = new DeliveryStatistics();
  readonly #errors = new Map<AttemptErrorType, number>();
  readonly #deadLetters = new Map<DeadLetterReason, number>();
  readonly #periods: { delivered: number; failed: number; made: number; uncounted: number }[];
  #unfinished = 0;
  #underWay = 0;

  constructor({ names, beginMs, lengthMs }: { names: readonly string[]; beginMs: number; lengthMs: number }) {
    this.#beginMs = beginMs;
    this.#lengthMs = lengthMs;
    this.#periods = names.map(() => ({ delivered: 0, failed: 0, made: 0, uncounted: 0 }));
  }

  /** The value of a field in the hash of a period; `detail` is the field without its name. */
  addRecord(period: number, detail: string, packed: Buffer): void {
    const [first = 0, second = 0, made = 0, ...rest] = unpackNumbers(packed);
    if (detail !== '') {
      this.#addDetail(period, detail, first);
      return;
    }
    this.#statistics.addRecord([first, second, 0, ...rest]);
    this.#addTo(period, { delivered: first, failed: second, made });
  }

  /** What a tally has of a target, which is not yet part of what was unfinished. */
  addTallied(atMs: number, detail: string, { what, bucket, count }: { what: string; bucket: string; count: number }): void {
    const period = Math.min(this.#periods.length - 1, Math.floor((atMs - this.#beginMs) / this.#lengthMs));
    if (detail !== '') {
      if (detail.startsWith('!') && uncountedEnds.has(detail.slice(1))) this.#unfinished -= count;
      this.#addDetail(period, detail, count);
      return;
    }
    this.#statistics.addTallied(what, bucket, count);
    const { tally } = hashFields;
    const delivered = what === tally.delivered || what === tally.deliveredInBatch ? count : 0;
    const failed = what === tally.failed ? count : 0;
    const made = what === tally.made ? count : 0;
    this.#unfinished += made - delivered - failed;
    this.#addTo(period, { delivered, failed, made });
  }

  addUnfinished(count: number, underWay: number): void {
    this.#unfinished += count;
    this.#underWay += underWay;
  }

  figures(failing: readonly FailingEndpoint[]): WebhookFigures {
    return {
      beginMs: this.#beginMs,
      statistics: this.#statistics,
      unfinished: Math.max(0, this.#unfinished),
      underWay: this.#underWay,
      errors: this.#errors,
      deadLetters: this.#deadLetters,
      periods: this.#periodsWithUnfinished(),
      failing,
    };
  }

  get failedAttempts(): number {
    return [...this.#errors.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Backwards from now: before a period there was what is there after it, less what was made and more what ended in it. */
  #periodsWithUnfinished(): WebhookPeriod[] {
    let unfinished = this.#unfinished;
    const backwards = this.#periods.toReversed().map(({ delivered, failed, made, uncounted }, back) => {
      const beginMs = this.#beginMs + (this.#periods.length - 1 - back) * this.#lengthMs;
      const period = { beginMs, delivered, failed, unfinished: Math.max(0, unfinished) };
      unfinished += delivered + failed + uncounted - made;
      return period;
    });
    return backwards.reverse();
  }

  #addDetail(period: number, detail: string, count: number): void {
    const kind = detail.slice(1);
    const type = detail.startsWith(':') ? errorTypeByLetter.get(kind) : undefined;
    if (type !== undefined) this.#errors.set(type, (this.#errors.get(type) ?? 0) + count);
    else {
      if (uncountedEnds.has(kind)) this.#addTo(period, { uncounted: count });
      const reason = [...deadLetterReasons].find((each) => each === kind);
      if (reason !== undefined) this.#deadLetters.set(reason, (this.#deadLetters.get(reason) ?? 0) + count);
    }
  }

  #addTo(period: number, counts: { delivered?: number; failed?: number; made?: number; uncounted?: number }): void {
    const sum = this.#periods[period];
    if (sum === undefined) return;
    sum.delivered += counts.delivered ?? 0;
    sum.failed += counts.failed ?? 0;
    sum.made += counts.made ?? 0;
    sum.uncounted += counts.uncounted ?? 0;
  }
}
