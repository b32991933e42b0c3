import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { SteadySender } from '../../hack/chaos/steady-sender.ts';
import { commandConnection } from '../../src/redis/connection.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { ingest, RestClient } from './rest.ts';

const perSecond = 20;

let directory: string;
let receiver: Receiver;
let port: number;
let opsPort: number;
let program: Program;
let sender: SteadySender | undefined;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-rekey-'));
  receiver = await startReceiver();
  port = await freePort();
  opsPort = await freePort();
});
afterAll(async () => {
  await sender?.stop();
  await program.stop();
  await receiver.close();
  rmSync(directory, { recursive: true, force: true });
});

const keysFile = (): string => join(directory, 'encryption-keys');
async function start(): Promise<RestClient> {
  program = startProgram(['standalone'], {
    POSTHORN_PORT: String(port),
    POSTHORN_OPS_PORT: String(opsPort),
    POSTHORN_DATA_DIR: directory,
    POSTHORN_LOG_LEVEL: 'info',
  });
  await program.waitForOutput(/^posthorn ready/m, 60_000);
  return new RestClient(`http://127.0.0.1:${port}`, readFileSync(join(directory, 'api-key'), 'utf8').trim());
}
async function rekey(keys = readFileSync(keysFile(), 'utf8').trim()): Promise<{ code: number | NodeJS.Signals; output: string }> {
  const run = startProgram(['rekey'], {
    POSTHORN_REDIS_URL: join(directory, 'redis', 'redis.sock'),
    POSTHORN_RESOURCE_STORE: 'redis',
    POSTHORN_ENCRYPTION_KEYS: keys,
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

/** Writes the keys and waits until each of the five processes has them. */
async function put(...keys: string[]): Promise<void> {
  const beside = `${keysFile()}.new`;
  writeFileSync(beside, `${keys.join(',')}\n`);
  renameSync(beside, keysFile());
  const wanted = keys.map((key, i) => `${key.split(':')[0]} ${i === 0 ? 'seal' : 'open'} ${processes}`).sort();
  await eventually(async () => expect(await keysOfProcesses()).toEqual(wanted), 60_000);
}
const processes = 5;
/** Each key and use with the number of processes that have it. */
async function keysOfProcesses(): Promise<string[]> {
  const metrics = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
  const found = new Map<string, number>();
  for (const [, labels] of metrics.matchAll(/^posthorn_encryption_key_info\{(.*)\} 1$/gm)) {
    const use = `${/\bid="(\w+)"/.exec(labels ?? '')?.[1]} ${/\buse="(\w+)"/.exec(labels ?? '')?.[1]}`;
    found.set(use, (found.get(use) ?? 0) + 1);
  }
  return [...found].map(([use, count]) => `${use} ${count}`).sort();
}

test('encryption keys are replaced under load without a restart: everything still opens, and no event is lost', async () => {
  const api = await start();
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

  sender = new SteadySender(`http://127.0.0.1:${port}/ingest/default/shop`, perSecond);
  sender.start();
  const accepts = async (more: number): Promise<void> => {
    const before = sender?.accepted.size ?? 0;
    await eventually(`${more} more events to be accepted`, 60_000, () => (sender?.accepted.size ?? 0) >= before + more);
  };
  await accepts(perSecond);
  const next = `k2:${randomBytes(32).toString('base64')}`;
  await put(old, next);
  await made('destinations', { name: 'Old', url, authType: 'bearer', authConfig: { token: 'a-long-token-000043' } });
  expect(await keysInUse()).toEqual(['k1']);
  await put(next, old);
  await made('destinations', { name: 'New', url, authType: 'bearer', authConfig: { token: 'a-long-token-000044' } });
  expect(await keysInUse()).toEqual(['k1', 'k2']);
  const first = await rekey();
  // The controller may have published the record once more in between, with what was in force before.
  expect([first.code, first.output]).toEqual([
    0,
    expect.stringMatching(/^resealed: \d+ secrets, \d+ stored objects, \d+ records, \d+ webhook endpoints; 0 did not open$/m),
  ]);
  expect(await keysInUse()).toEqual(['k2']);
  const again = await rekey();
  expect([again.code, again.output]).toEqual([0, expect.stringContaining('resealed: 0 secrets, 0 stored objects, 0 records')]);

  await put(next);
  await accepts(perSecond);
  await sender.stop();
  expect((await api.send('GET', '/api/destinations/orders')).body).toMatchObject({ authConfig: { token: '••••0042' } });
  const body = Buffer.from('{"order":7}');
  expect((await ingest(`http://127.0.0.1:${port}`, 'default/shop', { headers: { 'content-type': 'application/json' }, body })).status).toBe(
    200,
  );
  const numbersThatArrived = () => new Set(receiver.requests.map(({ body }) => JSON.parse(body.toString()).number));
  const missing = () => [...(sender?.accepted ?? [])].filter((number) => !numbersThatArrived().has(number));
  await eventually(() => expect(missing()).toEqual([]), 60_000);
  expect(sender.refusals).toEqual(new Map());
  for (const { headers: sent } of receiver.requests) {
    expect(sent['authorization']).toBe('Bearer a-long-token-000042');
    expect(sent['webhook-signature']).toMatch(/^v1,/);
  }
  expect(program.output()).not.toContain('restarting');
}, 240_000);

test.each([
  ['without keys', 'nothing', 'must be id:base64[,id:base64…] with keys of 32 bytes'],
  ['that is missing', null, 'cannot be read'],
])(
  'a file of encryption keys %s leaves the earlier keys in force, and each process reports it once',
  async (_, text, reason) => {
    const from = program.output().length;
    const keys = readFileSync(keysFile(), 'utf8');
    if (text === null) rmSync(keysFile());
    else writeFileSync(keysFile(), text);
    const complaints = () =>
      program
        .output()
        .slice(from)
        .split('\n')
        .filter((line) => line.includes('the encryption keys cannot be read') && line.includes(reason));
    await eventually(() => expect(complaints()).toHaveLength(processes), 60_000);
    expect(await keysOfProcesses()).toEqual([`k2 seal ${processes}`]);
    writeFileSync(keysFile(), keys);
  },
  120_000,
);

test('what does not open is named, and the exit code is 1', async () => {
  const { code, output } = await rekey(`k3:${randomBytes(32).toString('base64')}`);
  expect(code).toBe(1);
  expect(output).toMatch(/^destination dst_\w+: token does not open: .*k2/m);
  expect(output).toMatch(/^Secret default\/posthorn-orders-\w+ does not open/m);
  expect(await keysInUse()).toEqual(['k2']);
});
