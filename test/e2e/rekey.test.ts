import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { commandConnection } from '../../src/redis/connection.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { ingest, RestClient } from './rest.ts';

let directory: string;
let receiver: Receiver;
let port: number;
let program: Program;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-rekey-'));
  receiver = await startReceiver();
  port = await freePort();
});
afterAll(async () => {
  await program.stop();
  await receiver.close();
  rmSync(directory, { recursive: true, force: true });
});

const keysFile = (): string => join(directory, 'encryption-keys');
async function start(): Promise<RestClient> {
  program = startProgram(['standalone'], { POSTHORN_PORT: String(port), POSTHORN_DATA_DIR: directory });
  await program.waitForOutput(/^posthorn ready/m, 60_000);
  return new RestClient(`http://127.0.0.1:${port}`, readFileSync(join(directory, 'api-key'), 'utf8').trim());
}
async function rekey(): Promise<{ code: number | NodeJS.Signals; output: string }> {
  const run = startProgram(['rekey'], {
    POSTHORN_REDIS_URL: join(directory, 'redis', 'redis.sock'),
    POSTHORN_RESOURCE_STORE: 'redis',
    POSTHORN_ENCRYPTION_KEYS: readFileSync(keysFile(), 'utf8').trim(),
  });
  return { code: await run.ended, output: run.output() };
}
/** Ids of the keys under which something is sealed. */
async function keysInUse(): Promise<string[]> {
  const redis = commandConnection(join(directory, 'redis', 'redis.sock'));
  await redis.connect();
  try {
    const texts: string[] = [];
    for (const key of await redis.keys('*')) if ((await redis.type(key)) === 'hash') texts.push(...(await redis.hvals(key)));
    return [
      ...new Set(
        texts
          .join(' ')
          .matchAll(/sealed\.v1\.([A-Za-z0-9_-]+)\./g)
          .map((match) => match[1] ?? ''),
      ),
    ].sort();
  } finally {
    redis.disconnect();
  }
}

test('after rekey the old key can be dropped, and everything still opens', async () => {
  let api = await start();
  const made = async (path: string, body: object) => {
    const answer = await api.send('POST', `/api/${path}`, body);
    expect([answer.status, answer.body]).toEqual([201, expect.anything()]);
  };
  await made('sources', { name: 'Shop' });
  const url = `${receiver.url}/in`;
  const signingSecret = `whsec_${randomBytes(32).toString('base64')}`;
  await made('destinations', { name: 'Orders', url, authType: 'bearer', authConfig: { token: 'a-long-token-000042' }, signingSecret });
  await made('sources', { name: 'Signed', provider: 'github', signingSecret: 'the-secret-of-github-1' });
  const rotated = await api.send('POST', '/api/sources/signed/rotate-secret', { signingSecret: 'the-secret-of-github-2' });
  expect(rotated.status).toBe(200);
  const headers = { 'X-Key': 'a-long-key-of-the-channel' };
  await made('notification-channels', {
    name: 'Hook',
    type: 'webhook',
    config: { url: 'https://alerts.example.com/', headers, secret: signingSecret },
  });
  await made('notification-channels', { name: 'Pager', type: 'pagerduty', config: { routingKey: 'a'.repeat(32), severity: 'error' } });
  const s3 = { bucket: 'events', region: 'eu-central-1', accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'a-long-secret-key-00042' };
  await made('destinations', { name: 'Files', type: 's3', config: s3 });
  await made('routes', { name: 'All', sourceId: 'shop', destinationIds: ['orders'] });
  expect(await keysInUse()).toEqual(['k1']);
  const old = readFileSync(keysFile(), 'utf8').trim();

  await program.stop();
  const next = `k2:${randomBytes(32).toString('base64')}`;
  writeFileSync(keysFile(), `${next},${old}\n`);
  await start();
  expect(await keysInUse()).toContain('k1');
  const first = await rekey();
  // The controller may have published the record once more in between, with what was in force before.
  expect([first.code, first.output]).toEqual([
    0,
    expect.stringMatching(/^sealed anew: \d+ secrets, \d+ stored objects, \d+ records, \d+ webhook endpoints; 0 did not open$/m),
  ]);
  expect(await keysInUse()).toEqual(['k2']);
  const again = await rekey();
  expect([again.code, again.output]).toEqual([0, expect.stringContaining('sealed anew: 0 secrets, 0 stored objects, 0 records')]);

  await program.stop();
  writeFileSync(keysFile(), `${next}\n`);
  api = await start();
  expect((await api.send('GET', '/api/destinations/orders')).body).toMatchObject({ authConfig: { token: '••••0042' } });
  const body = Buffer.from('{"order":7}');
  expect((await ingest(`http://127.0.0.1:${port}`, 'default/shop', { headers: { 'content-type': 'application/json' }, body })).status).toBe(
    200,
  );
  const [request] = await receiver.arrived(1);
  expect(request?.headers['authorization']).toBe('Bearer a-long-token-000042');
  expect(request?.headers['webhook-signature']).toMatch(/^v1,/);
}, 120_000);

test('what does not open is named, and the exit code is 1', async () => {
  const keys = readFileSync(keysFile(), 'utf8');
  writeFileSync(keysFile(), `k3:${randomBytes(32).toString('base64')}\n`);
  const { code, output } = await rekey();
  writeFileSync(keysFile(), keys);
  expect(code).toBe(1);
  expect(output).toMatch(/^destination dst_\w+: token does not open: .*k2/m);
  expect(output).toMatch(/^Secret default\/posthorn-orders-\w+ does not open/m);
  expect(await keysInUse()).toEqual(['k2']);
});
