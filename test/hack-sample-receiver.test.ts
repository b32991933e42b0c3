import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { eventually } from './support/eventually.ts';
import { freePort } from './support/ports.ts';
import { type ServerProcess, spawnServer } from './support/server-process.ts';

const key = Buffer.alloc(32, 'k');
const secret = `whsec_${key.toString('base64')}`;
const now = (): string => String(Math.floor(Date.now() / 1000));
let receiver: ServerProcess;
let url: string;

beforeAll(async () => {
  const port = await freePort();
  url = `http://127.0.0.1:${port}/`;
  receiver = spawnServer(process.execPath, ['hack/sample-receiver.ts', '--port', String(port), '--secret', secret], process.cwd());
  await eventually(() => expect(receiver.lastOutput()).toContain('listening'));
});
afterAll(() => receiver.stop('SIGTERM'));

function deliver(body: string | Buffer, signature: string, timestamp = now()): Promise<number> {
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': timestamp, 'webhook-signature': signature };
  return fetch(url, { method: 'POST', headers, body: new Uint8Array(Buffer.from(body)) }).then(({ status }) => status);
}

test.each(['{"order":7}', 'no JSON at all', ''])('takes %j with the signature of another implementation', async (body) => {
  const at = new Date();
  const timestamp = String(Math.floor(at.getTime() / 1000));
  expect(await deliver(body, new Webhook(secret).sign('msg_1', at, body), timestamp)).toBe(200);
});

test('takes bytes that are no text, and one of several signatures', async () => {
  const bytes = Buffer.from([0, 0xff, 0xfe]);
  const timestamp = now();
  const mac = createHmac('sha256', key).update(`msg_1.${timestamp}.`).update(bytes).digest('base64');
  expect(await deliver(bytes, `v1,AAAA v1,${mac}`, timestamp)).toBe(200);
});

test('answers 401 to a wrong signature, and to one that is too old', async () => {
  expect(await deliver('{}', 'v1,AAAA')).toBe(401);
  const old = new Date(Date.now() - 3_600_000);
  const signature = new Webhook(secret).sign('msg_1', old, '{}');
  expect(await deliver('{}', signature, String(Math.floor(old.getTime() / 1000)))).toBe(401);
});
