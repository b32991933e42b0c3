import { z } from 'zod';

const ingestAnswer = z.looseObject({ success: z.boolean().optional(), eventId: z.string().optional() });

/** Requests to a Posthorn as its users make them. */
export class RestClient {
  readonly #url: string;
  readonly #apiKey: string;

  constructor(url: string, apiKey: string) {
    this.#url = url;
    this.#apiKey = apiKey;
  }

  async send(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    // biome-ignore lint/suspicious/noExplicitAny: each test says what it expects of the body
  ): Promise<{ status: number; body: any; headers: Headers }> {
    const response = await fetch(this.#url + path, {
      method,
      headers: { authorization: `Bearer ${this.#apiKey}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(10_000),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text), headers: response.headers };
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
    signal: AbortSignal.timeout(10_000),
  });
  return { status: response.status, body: ingestAnswer.parse(await response.json()) };
}
