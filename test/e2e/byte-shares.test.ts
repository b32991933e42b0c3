import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { checkShards } from '../../src/data/check/shard-check.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

const directory = mkdtempSync(join(tmpdir(), 'posthorn-e2e-'));
const manifests = join(directory, 'manifests');
const payload = JSON.stringify({ text: 'x'.repeat(240 * 1024) });
const apiVersion = 'posthorn.dev/v1alpha1';
let redis: RedisServer;
let receiver: Receiver;
let program: Program;
let url: string;

const write = (name: string, objects: readonly object[]): void =>
  writeFileSync(join(manifests, `${name}.yaml`), objects.map((object) => JSON.stringify(object)).join('\n---\n'));

function writeOrganization(name: string, { enabled }: { enabled: boolean }): void {
  const metadata = (of: string): object => ({ name: of, namespace: name });
  write(name, [
    { apiVersion, kind: 'Organization', metadata: { name }, spec: { namespace: name, egress: { allowedCidrs: ['127.0.0.0/8'] } } },
    { apiVersion, kind: 'Source', metadata: metadata('in'), spec: { provider: 'generic' } },
    { apiVersion, kind: 'Destination', metadata: metadata('out'), spec: { type: 'http', enabled, http: { url: receiver.url } } },
    { apiVersion, kind: 'Route', metadata: metadata('all'), spec: { sourceRef: { name: 'in' }, destinationRefs: [{ name: 'out' }] } },
  ]);
}

const post = (organization: string, body = payload): Promise<Response> =>
  fetch(`${url}/ingest/${organization}/in`, { method: 'POST', body, headers: { 'content-type': 'application/json' } });

/** Sends so many events, a few at a time, and counts the answers by code. */
async function send(organization: string, count: number): Promise<Record<string, number>> {
  const answers: Record<string, number> = {};
  let left = count;
  /** Again after a while, where a busy machine holds up Redis for longer than 1.5 s. */
  const postPatiently = async (tries = 5): Promise<Response> => {
    const answer = await post(organization);
    if (answer.status !== 503 || tries === 1) return answer;
    await sleep(1000 * Number(answer.headers.get('retry-after')));
    return postPatiently(tries - 1);
  };
  const sender = async (): Promise<void> => {
    while (left-- > 0) {
      const answer = await postPatiently();
      const code = answer.headers.get('x-error-code') ?? String(answer.status);
      answers[code] = (answers[code] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: 8 }, sender));
  return answers;
}

beforeAll(async () => {
  mkdirSync(manifests);
  redis = await startRedis(['--save', '', '--appendonly', 'no', '--maxmemory', '80mb']);
  receiver = await startReceiver();
  writeOrganization('greedy', { enabled: false });
  writeOrganization('honest', { enabled: true });
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  program = startProgram(['standalone', '--manifests', manifests], {
    POSTHORN_PORT: String(port),
    POSTHORN_DATA_DIR: join(directory, 'data'),
    POSTHORN_REDIS_URL: redis.url,
    POSTHORN_SHARDS: '3',
  });
  await program.waitForOutput(/^posthorn ready /m, 60_000);
  for (const name of ['greedy', 'honest'])
    await eventually(`${name} to be ready`, 30_000, async () => (await post(name, '{}')).status === 200);
});
afterAll(async () => {
  await program?.stop();
  await receiver?.close();
  await redis?.stop();
  rmSync(directory, { recursive: true, force: true });
});

test('an organization whose events fill its share of Redis is refused, all events of another are taken, and the first is taken again once it drains', async () => {
  const filling = await send('greedy', 300);
  expect(Object.keys(filling)).toEqual(['200', 'QUEUE_FULL']);
  expect(filling[200]).toBeGreaterThan(100);

  expect(await send('honest', 20)).toEqual({ 200: 20 });
  const refused = await post('greedy');
  expect([refused.status, refused.headers.get('x-error-code'), Number(refused.headers.get('retry-after'))]).toEqual([
    429,
    'QUEUE_FULL',
    10,
  ]);
  expect(await refused.json()).toMatchObject({ error: 'Too Many Requests', code: 'QUEUE_FULL', message: expect.stringContaining('share') });
  expect(await send('honest', 20)).toEqual({ 200: 20 });

  writeOrganization('greedy', { enabled: true });
  await eventually('greedy to be taken again', 60_000, async () => (await post('greedy')).status === 200);
  await eventually('all to be delivered', 60_000, async () => {
    const { unfinished } = await checkShards({ redis: redis.client, prefix: 'posthorn:', shards: 3 });
    return unfinished === 0;
  });
  expect(await send('greedy', 20)).toEqual({ 200: 20 });
  expect((await checkShards({ redis: redis.client, prefix: 'posthorn:', shards: 3 })).findings).toEqual([]);
});
