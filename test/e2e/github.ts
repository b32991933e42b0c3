import { createHmac, randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { z } from 'zod';

const examples = z
  .array(z.object({ name: z.string(), examples: z.array(z.unknown()) }))
  .parse(createRequire(import.meta.url)('@octokit/webhooks-examples'));

export interface GithubDelivery {
  event: string;
  /** GitHub's own delivery id. */
  id: string;
  body: Buffer;
  headers: Record<string, string>;
}

/** One delivery for each event of GitHub's examples, as GitHub sends and signs it. */
export function githubDeliveries(secret: string): GithubDelivery[] {
  return examples.map(({ name, examples: [payload] }, i) => githubDelivery(name, payload, secret, i));
}

/** One delivery of the event's first example. */
export function githubDeliveryOf(event: string, secret: string): GithubDelivery {
  const found = examples.find(({ name }) => name === event);
  if (found === undefined) throw new Error(`no example of ${event}`);
  return githubDelivery(event, found.examples[0], secret, 0);
}

/** The payload with a member of its own: no two events of GitHub have the same body. */
function distinct(payload: unknown): unknown {
  return { ...z.record(z.string(), z.unknown()).parse(payload), test_run: randomUUID() };
}

function githubDelivery(event: string, payload: unknown, secret: string, i: number): GithubDelivery {
  // Some with blanks, so that what parses and prints again does not pass for byte for byte.
  const sent = distinct(payload);
  const body = Buffer.from(i % 2 === 0 ? JSON.stringify(sent) : `${JSON.stringify(sent, null, 2)}\n`);
  const id = randomUUID();
  const signed = (algorithm: string): string => `${algorithm}=${createHmac(algorithm, secret).update(body).digest('hex')}`;
  return {
    event,
    id,
    body,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'GitHub-Hookshot/044aadd',
      accept: '*/*',
      'x-github-event': event,
      'x-github-delivery': id,
      'x-github-hook-id': '292430182',
      'x-hub-signature': signed('sha1'),
      'x-hub-signature-256': signed('sha256'),
    },
  };
}
