import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, type Dispatcher } from 'undici';

export const payloadBytes = 400;

export interface Sent {
  seconds: number;
  /** How many got no 2xx. */
  refused: number;
  answerMs: number[];
}

/** What a payload is sent in; without: as it is. */
export interface Envelope {
  headers: readonly string[];
  /** The body of the next request. */
  around: (payload: string) => string;
}

export class Sender {
  readonly #agent: Agent;
  readonly #origin: string;
  readonly #envelope: Envelope;
  #next = 0;

  constructor(origin: string, connections: number, envelope: Envelope = { headers: [], around: (payload) => payload }) {
    this.#origin = origin;
    this.#envelope = envelope;
    this.#agent = new Agent({ connections, pipelining: 1 });
  }

  /** `count` requests, `senders` at a time. */
  async closedLoop(path: string, count: number, senders: number): Promise<Sent> {
    const begin = performance.now();
    const answerMs: number[] = [];
    let left = count;
    let refused = 0;
    await Promise.all(
      Array.from({ length: senders }, async () => {
        while (left-- > 0) {
          const sent = performance.now();
          if (!(await this.#send(path, sent))) refused++;
          answerMs.push(performance.now() - sent);
        }
      }),
    );
    return { seconds: (performance.now() - begin) / 1000, refused, answerMs };
  }

  /** `perSecond` requests a second, each at its time, whatever becomes of the others; latencies count from the intended time. */
  async openLoop(path: string, perSecond: number, seconds: number): Promise<Sent> {
    const begin = performance.now();
    const answerMs: number[] = [];
    let refused = 0;
    const underWay: Promise<void>[] = [];
    for (let i = 0; i < perSecond * seconds; i++) {
      const at = begin + (i * 1000) / perSecond;
      const waitMs = at - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      underWay.push(
        this.#send(path, at).then((ok) => {
          if (!ok) refused++;
          answerMs.push(performance.now() - at);
        }),
      );
    }
    await Promise.all(underWay);
    return { seconds: (performance.now() - begin) / 1000, refused, answerMs };
  }

  async close(): Promise<void> {
    await this.#agent.close();
  }

  #send(path: string, sentAt: number): Promise<boolean> {
    const head = `{"number":${this.#next++},"sent":${sentAt},"pad":"`;
    const body = this.#envelope.around(`${head}${'x'.repeat(Math.max(0, payloadBytes - head.length - 2))}"}`);
    const headers = ['content-type', 'application/json', ...this.#envelope.headers];
    return new Promise((resolve) => {
      let status = 0;
      const handler: Dispatcher.DispatchHandler = {
        onRequestStart() {},
        onResponseStart(_, statusCode) {
          status = statusCode;
        },
        onResponseData() {},
        onResponseEnd: () => resolve(status >= 200 && status <= 299),
        onResponseError: () => resolve(false),
      };
      this.#agent.dispatch({ origin: this.#origin, path, method: 'POST', body, headers }, handler);
    });
  }
}

/** Requests a second of a bare undici loop against a bare receiver: the ceiling of this machine at this time. */
export async function bareCeiling(origin: string, count: number, senders: number): Promise<number> {
  const sender = new Sender(origin, senders);
  await sender.closedLoop('/', 2000, senders);
  const { seconds } = await sender.closedLoop('/', count, senders);
  await sender.close();
  return count / seconds;
}
