import { setTimeout as sleep } from 'node:timers/promises';
import { payloadBytes } from '../bench/lib/traffic.ts';

const answerDeadlineMs = 5000;

interface SenderOptions {
  headers?: Record<string, string>;
  /** Further headers of the event with this number. */
  headersOf?: (number: number) => Record<string, string>;
  /** Requests without an answer, at most. */
  maxUnderWay?: number;
  /** While it returns true, nothing is sent. */
  waits?: () => boolean;
}

/** Sends events at a rate, each once, whatever happens to the receiver; records which of them were accepted. */
export class SteadySender {
  /** Numbers of the events that were sent, and of those that were answered with 2xx. */
  readonly sent = new Set<number>();
  readonly accepted = new Set<number>();
  refused = 0;
  /** How many were refused with which status. */
  readonly refusals = new Map<number, number>();
  /** No answer: such an event may have been stored. */
  unanswered = 0;
  /** When each of those that were not accepted was sent, in ms of `performance.now()`. */
  readonly failedAtMs: number[] = [];
  readonly #url: string;
  readonly #perSecond: number;
  readonly #headers: Record<string, string>;
  readonly #headersOf: (number: number) => Record<string, string>;
  readonly #maxUnderWay: number;
  readonly #waits: () => boolean;
  readonly #underWay = new Set<Promise<void>>();
  #isRunning = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(url: string, perSecond: number, options: SenderOptions = {}) {
    this.#url = url;
    this.#perSecond = perSecond;
    this.#headers = { 'content-type': 'application/json', ...options.headers };
    this.#headersOf = options.headersOf ?? (() => ({}));
    this.#maxUnderWay = options.maxUnderWay ?? 500;
    this.#waits = options.waits ?? (() => false);
  }

  start(): void {
    this.#isRunning = true;
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await this.#loop;
    await Promise.all(this.#underWay);
  }

  async #run(): Promise<void> {
    const begin = performance.now();
    for (let number = 0; this.#isRunning; number++) {
      const waitMs = begin + (number * 1000) / this.#perSecond - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      while (this.#isRunning && (this.#underWay.size >= this.#maxUnderWay || this.#waits())) await sleep(10);
      const sending: Promise<void> = this.#send(number).finally(() => this.#underWay.delete(sending));
      this.#underWay.add(sending);
    }
  }

  async #send(number: number): Promise<void> {
    this.sent.add(number);
    const sentMs = performance.now();
    const head = `{"number":${number},"sent":${sentMs},"pad":"`;
    const body = `${head}${'x'.repeat(Math.max(0, payloadBytes - head.length - 2))}"}`;
    try {
      const signal = AbortSignal.timeout(answerDeadlineMs);
      const headers = { ...this.#headers, ...this.#headersOf(number) };
      const response = await fetch(this.#url, { method: 'POST', body, headers, signal });
      await response.arrayBuffer();
      if (response.ok) {
        this.accepted.add(number);
        return;
      }
      this.refused++;
      this.refusals.set(response.status, (this.refusals.get(response.status) ?? 0) + 1);
    } catch {
      this.unanswered++;
    }
    this.failedAtMs.push(sentMs);
  }
}
