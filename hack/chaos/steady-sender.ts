import { setTimeout as sleep } from 'node:timers/promises';
import { payloadBytes } from '../bench/lib/traffic.ts';

const answerDeadlineMs = 5000;
const mostUnderWay = 500;

/** Sends events at a rate, each once, whatever happens to the receiver; knows which of them were accepted. */
export class SteadySender {
  /** Numbers of the events that were sent, and of those that were answered with 2xx. */
  readonly sent = new Set<number>();
  readonly accepted = new Set<number>();
  refused = 0;
  /** No answer: such an event may have been stored. */
  unanswered = 0;
  readonly #url: string;
  readonly #perSecond: number;
  readonly #underWay = new Set<Promise<void>>();
  #isRunning = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(url: string, perSecond: number) {
    this.#url = url;
    this.#perSecond = perSecond;
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
      while (this.#underWay.size >= mostUnderWay) await sleep(10);
      const sending: Promise<void> = this.#send(number).finally(() => this.#underWay.delete(sending));
      this.#underWay.add(sending);
    }
  }

  async #send(number: number): Promise<void> {
    this.sent.add(number);
    const head = `{"number":${number},"sent":${performance.now()},"pad":"`;
    const body = `${head}${'x'.repeat(Math.max(0, payloadBytes - head.length - 2))}"}`;
    try {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(this.#url, { method: 'POST', body, headers, signal: AbortSignal.timeout(answerDeadlineMs) });
      await response.arrayBuffer();
      if (response.ok) this.accepted.add(number);
      else this.refused++;
    } catch {
      this.unanswered++;
    }
  }
}
