import type { IncomingHttpHeaders } from 'node:http';
import { expect } from '@jest/globals';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';

/** Whether a request to a webhook endpoint is signed with a secret, by two independent verifiers, which must agree. */
export function verifies({ headers, body }: { headers: IncomingHttpHeaders; body: Buffer }, secret: string): boolean {
  const given = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  const says = [new StandardWebhook(secret), new SvixWebhook(secret)].map((verifier) => {
    try {
      verifier.verify(body, given);
      return true;
    } catch {
      return false;
    }
  });
  expect(says[0]).toBe(says[1]);
  return says[0] === true;
}
