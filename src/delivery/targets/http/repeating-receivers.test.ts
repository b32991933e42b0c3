import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Receiver, startReceiver } from '../../../../test/support/receiver.ts';
import { systemClock } from '../../../runtime/system-clock.ts';
import { Dispatchers } from './dispatchers.ts';
import { exchange } from './http-exchange.ts';
import { SentSecrets } from './sent-secrets.ts';

const token = 'CANARY-0123456789-of-the-shop';
const dispatchers = new Dispatchers({ connections: 1, clock: systemClock });
const egress = { allowedCidrs: ['127.0.0.0/8'], allowedHosts: [] };
let receiver: Receiver;
let answer: (sent: string) => string;

beforeAll(async () => {
  receiver = await startReceiver((response, _, { headers, path }) => void response.end(answer(JSON.stringify({ path, headers }))));
});
afterAll(async () => {
  await dispatchers.close();
  await receiver.close();
});

async function replyTo(headers: string[], path = '/', secrets: SentSecrets = SentSecrets.none): Promise<string> {
  const request = { origin: receiver.url, path, method: 'POST' as const, headers, body: Buffer.from('{}'), secrets };
  const dispatcher = dispatchers.forRules({ egress, tls: null, usesProxy: false })();
  const result = await exchange(dispatcher, request, { timeoutMs: 30_000, clock: systemClock, signal: new AbortController().signal });
  return result.type === 'response' ? result.body.toString() : result.error.message;
}

describe('the reply of a receiver that repeats its request', () => {
  test.each([
    ['in authorization', ['authorization', `Bearer ${token}`], '/'],
    ['as password of Basic', ['authorization', `Basic ${Buffer.from(`shop:${token}`).toString('base64')}`], '/'],
    ['in a header that is named for it', ['x-api-key', token], '/'],
    ['in the query', [], `/hook?access_token=${token}`],
  ])(
    'the reply of a receiver that repeats its request is free of the credential %s, although the plan did not name it',
    async (_, headers, path) => {
      answer = (sent) => `${sent} and ${Buffer.from(token).toString('base64')}`;
      expect(await replyTo(headers, path)).not.toMatch(/CANARY|Q0FOQVJZ/);
    },
  );

  test('the reply of a receiver that repeats its request is free of a secret of the plan in a header of any name', async () => {
    answer = (sent) => sent;
    expect(await replyTo(['x-shop', token], '/', new SentSecrets([token]))).toContain('"x-shop":"••••"');
  });

  test('the reply of a receiver that repeats its request has no beginning of a secret at the place where reading stops', async () => {
    for (const kept of [1, 5, 20, token.length - 1]) {
      answer = () => `${'.'.repeat(16_384 - kept)}${token}`;
      expect(await replyTo([], '/', new SentSecrets([token]))).toBe(`${'.'.repeat(16_384 - kept)}••••`);
    }
  });

  test('the reply of a receiver that repeats its request is what the receiver sent, byte for byte, when it repeats no secret', async () => {
    answer = () => `{"error":"no such order","team":"north","like":"CANARY"}`;
    expect(await replyTo(['x-team', 'north-team'], '/', new SentSecrets([token]))).toBe(answer(''));
  });
});
