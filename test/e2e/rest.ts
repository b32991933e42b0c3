import { z } from 'zod';
import { fetchProgrammed } from '../support/api-writes.ts';

const ingestAnswer = z.looseObject({ success: z.boolean().optional(), eventId: z.string().optional() });

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: each test knows its expected body
  body: any;
  headers: Headers;
}

/** Requests to a Posthorn as its users make them. */
export class RestClient {
  readonly #url: string;
  readonly #apiKey: string;

  constructor(url: string, apiKey: string) {
    this.#url = url;
    this.#apiKey = apiKey;
  }

  send(method: Method, path: string, body?: unknown): Promise<Answer> {
    return this.sendText(method, path, body === undefined ? undefined : JSON.stringify(body));
  }

  /** Sends JSON unchanged. */
  async sendText(method: Method, path: string, text?: string): Promise<Answer> {
    const response = await fetchProgrammed(this.#url + path, {
      method,
      headers: { authorization: `Bearer ${this.#apiKey}`, ...(text === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(text === undefined ? {} : { body: text }),
      signal: AbortSignal.timeout(30_000),
    });
    const answer = await response.text();
    return { status: response.status, body: answer === '' ? null : JSON.parse(answer), headers: response.headers };
  }
}

/** Posts to a source's ingest path. */
export async function ingest(
  url: string,
  source: string,
  delivery: { headers: Record<string, string>; body: Buffer },
): Promise<{ status: number; body: z.output<typeof ingestAnswer> }> {
  const response = await fetch(`${url}/ingest/${source}`, {
    method: 'POST',
    headers: delivery.headers,
    body: new Uint8Array(delivery.body),
    signal: AbortSignal.timeout(30_000),
  });
  return { status: response.status, body: ingestAnswer.parse(await response.json()) };
}
