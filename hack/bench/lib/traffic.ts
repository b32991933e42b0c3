import { Agent, type Dispatcher } from 'undici';
import { openLoop } from './open-loop.ts';

export const payloadBytes = 400;

export interface Sent {
  seconds: number;
  /** How many got no 2xx. */
  refused: number;
  answerMs: number[];
  /** Numbers of the events that were answered with 2xx. */
  accepted: number[];
  /** Numbers of those without an answer, or with 5xx: such an event may have been stored. */
  uncertain: number[];
}

/** What a payload is sent in; without: as it is. */
export interface Envelope {
  headers: readonly string[];
  /** The body of the next request. */
  around: (payload: string, number: number) => string;
}

/** Sends events with a number each, which no other sender of the process uses. */
export class Sender {
  static #next = 0;
  readonly #agent: Agent;
  readonly #origin: string;
  readonly #envelope: Envelope;

  constructor(origin: string, connections: number, envelope: Envelope = { headers: [], around: (payload) => payload }) {
    this.#origin = origin;
    this.#envelope = envelope;
    this.#agent = new Agent({ connections, pipelining: 1 });
  }

  /** `count` requests, `senders` at a time. */
  async closedLoop(path: string, count: number, senders: number): Promise<Sent> {
    const begin = performance.now();
    const sent = nothingSent();
    let left = count;
    await Promise.all(
      Array.from({ length: senders }, async () => {
        while (left-- > 0) {
          const at = performance.now();
          await this.#send(path, at, sent);
          sent.answerMs.push(performance.now() - at);
        }
      }),
    );
    return { ...sent, seconds: (performance.now() - begin) / 1000 };
  }

  /** `perSecond` requests a second, each at its time, independent of the others; latencies count from the intended time. */
  async openLoop(path: string, perSecond: number, seconds: number): Promise<Sent> {
    const begin = performance.now();
    const sent = nothingSent();
    await openLoop(perSecond, seconds, async (at) => {
      await this.#send(path, at, sent);
      sent.answerMs.push(performance.now() - at);
    });
    return { ...sent, seconds: (performance.now() - begin) / 1000 };
  }

  async close(): Promise<void> {
    await this.#agent.close();
  }

  #send(path: string, sentAt: number, sent: Sent): Promise<void> {
    const number = Sender.#next++;
    const head = `{"number":${number},"sent":${sentAt},"pad":"`;
    const body = this.#envelope.around(`${head}${'x'.repeat(Math.max(0, payloadBytes - head.length - 2))}"}`, number);
    const headers = ['content-type', 'application/json', ...this.#envelope.headers];
    return new Promise((resolve) => {
      let status = 0;
      const ended = (): void => {
        const isAccepted = status >= 200 && status <= 299;
        if (isAccepted) sent.accepted.push(number);
        else sent.refused++;
        if (status === 0 || status >= 500) sent.uncertain.push(number);
        resolve();
      };
      const handler: Dispatcher.DispatchHandler = {
        onRequestStart() {},
        onResponseStart(_, statusCode) {
          status = statusCode;
        },
        onResponseData() {},
        onResponseEnd: ended,
        onResponseError: ended,
      };
      this.#agent.dispatch({ origin: this.#origin, path, method: 'POST', body, headers }, handler);
    });
  }
}

/** What was sent in several goes, as one. */
export function joined(parts: readonly Sent[]): Sent {
  return {
    seconds: parts.reduce((sum, { seconds }) => sum + seconds, 0),
    refused: parts.reduce((sum, { refused }) => sum + refused, 0),
    answerMs: parts.flatMap(({ answerMs }) => answerMs),
    accepted: parts.flatMap(({ accepted }) => accepted),
    uncertain: parts.flatMap(({ uncertain }) => uncertain),
  };
}

function nothingSent(): Sent {
  return { seconds: 0, refused: 0, answerMs: [], accepted: [], uncertain: [] };
}
