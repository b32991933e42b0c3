import { createHmac, createPrivateKey, sign } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { eventually } from './support/eventually.ts';
import { freePort } from './support/ports.ts';
import { type ServerProcess, spawnServer } from './support/server-process.ts';

const key = Buffer.alloc(32, 'k');
const secret = `whsec_${key.toString('base64')}`;
const now = (): string => String(Math.floor(Date.now() / 1000));
/** RFC 8032, test 3. */
const seed = 'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7';
const publicKey = `whpk_${Buffer.from('fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025', 'hex').toString('base64')}`;
const receivers: ServerProcess[] = [];
let url: string;

/** Returns its URL. */
async function startReceiver(verifiedWith: string): Promise<string> {
  const port = await freePort();
  const receiver = spawnServer(
    process.execPath,
    ['hack/sample-receiver.ts', '--port', String(port), '--secret', verifiedWith],
    process.cwd(),
  );
  receivers.push(receiver);
  await eventually(() => expect(receiver.lastOutput()).toContain('listening'));
  return `http://127.0.0.1:${port}/`;
}

beforeAll(async () => {
  url = await startReceiver(secret);
});
afterAll(async () => {
  for (const receiver of receivers) await receiver.stop('SIGTERM');
});

function deliver(body: string | Buffer, signature: string, timestamp = now(), to = url): Promise<number> {
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': timestamp, 'webhook-signature': signature };
  return fetch(to, { method: 'POST', headers, body: new Uint8Array(Buffer.from(body)) }).then(({ status }) => status);
}

test.each(['{"order":7}', 'no JSON at all', ''])('the receiver takes %j with the signature of another implementation', async (body) => {
  const at = new Date();
  const timestamp = String(Math.floor(at.getTime() / 1000));
  expect(await deliver(body, new Webhook(secret).sign('msg_1', at, body), timestamp)).toBe(200);
});

test('the receiver takes bytes that are no text, and one of several signatures', async () => {
  const bytes = Buffer.from([0, 0xff, 0xfe]);
  const timestamp = now();
  const mac = createHmac('sha256', key).update(`msg_1.${timestamp}.`).update(bytes).digest('base64');
  expect(await deliver(bytes, `v1,AAAA v1,${mac}`, timestamp)).toBe(200);
});

test('the receiver answers 401 to a wrong signature, and to one that is too old', async () => {
  expect(await deliver('{}', 'v1,AAAA')).toBe(401);
  const old = new Date(Date.now() - 3_600_000);
  const signature = new Webhook(secret).sign('msg_1', old, '{}');
  expect(await deliver('{}', signature, String(Math.floor(old.getTime() / 1000)))).toBe(401);
});

test('the receiver takes a v1a signature among others with a public key, and no signature of another body or version', async () => {
  const to = await startReceiver(publicKey);
  const head = Buffer.from('302e020100300506032b657004220420', 'hex');
  const privateKey = createPrivateKey({ key: Buffer.concat([head, Buffer.from(seed, 'hex')]), format: 'der', type: 'pkcs8' });
  const timestamp = now();
  const signature = sign(null, Buffer.from(`msg_1.${timestamp}.{}`), privateKey).toString('base64');
  expect(await deliver('{}', `v1,AAAA v1a,AAAA v1a,${signature}`, timestamp, to)).toBe(200);
  expect(await deliver('{ }', `v1a,${signature}`, timestamp, to)).toBe(401);
  expect(await deliver('{}', `v1,${signature}`, timestamp, to)).toBe(401);
});
