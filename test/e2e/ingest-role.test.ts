import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';
import { routeRecord, sourceRecord } from '../support/records.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

const prefix = 'posthorn:';
let redis: RedisServer;
const origins: Record<string, string> = {};
const programs: Program[] = [];

beforeAll(async () => {
  redis = await startRedis();
  const publisher = new RedisRegistryPublisher(redis.client, prefix);
  const epoch = await publisher.mintEpoch();
  await publisher.publish(epoch, 'source', sourceRecord({}));
  await publisher.publish(epoch, 'route', routeRecord({ destinations: [{ id: 'dst_a', shard: 0 }] }));
  await publisher.markComplete();
  await Promise.all([start('ingest'), start('api'), start('api', 'api that takes events', { POSTHORN_API_INGEST: 'true' })]);
}, 120_000);
afterAll(async () => {
  await Promise.all(programs.map((program) => program.stop()));
  await redis?.stop();
});

async function start(role: 'ingest' | 'api', name: string = role, environment: Record<string, string> = {}): Promise<void> {
  const [port, opsPort] = [await freePort(), await freePort()];
  const program = startProgram([role], {
    POSTHORN_REDIS_URL: redis.url,
    POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    POSTHORN_SHARDS: '1',
    POSTHORN_HOST: '127.0.0.1',
    POSTHORN_PORT: String(port),
    POSTHORN_OPS_PORT: String(opsPort),
    // Any request to Kubernetes would fail here.
    ...(role === 'ingest' ? { KUBECONFIG: '/does/not/exist' } : { POSTHORN_RESOURCE_STORE: 'redis' }),
    ...environment,
  });
  programs.push(program);
  origins[name] = `http://127.0.0.1:${port}`;
  origins[`${name} ops`] = `http://127.0.0.1:${opsPort}`;
  await eventually(
    `${role} to be ready (${program.output()})`,
    60_000,
    async () => (await fetch(`${origins[name]}/readyz`).catch(() => null))?.status === 200,
  );
}

test.each([
  ['ingest takes events with Redis alone', 'ingest'],
  ['an api takes events, too, while senders are moved from it to ingest', 'api that takes events'],
])('%s', async (_, name) => {
  const answer = await fetch(`${origins[name]}/ingest/acme/github`, { method: 'POST', body: '{"n":1}' });
  expect(answer.status).toBe(200);
  const { eventId } = (await answer.json()) as { eventId: string };
  const reader = new RedisMessageReader({ redis: redis.client, prefix, shards: () => 1 });
  expect((await reader.event('org_a', eventId))?.payload?.toString()).toBe('{"n":1}');
});

test.each(['/ingest/acme/github', '/ingest/acme/github?a=b', '/ingest/nobody/nothing', '/ingest'])(
  'the api takes no event: a post to %s is 404 in the form of all errors, without a look at the key, and stores nothing',
  async (path) => {
    const before = await redis.client.keys('*evt*');
    const answer = await fetch(`${origins['api']}${path}`, { method: 'POST', body: '{"n":1}' });
    expect([answer.status, answer.headers.get('x-error-code'), answer.headers.get('x-request-id')]).toEqual([
      404,
      'NOT_FOUND',
      expect.any(String),
    ]);
    const message = 'This server does not accept events: post them to the ingestUrl of the source.';
    expect(await answer.json()).toEqual({ error: 'Not Found', message, code: 'NOT_FOUND' });
    expect(await redis.client.keys('*evt*')).toEqual(before);
    const metrics = await (await fetch(`${origins['api ops']}/metrics`)).text();
    expect(metrics).not.toContain('posthorn_ingest_requests_total');
  },
);

test('ingest serves nothing else: other paths are 404 in the form of all errors', async () => {
  const answer = await fetch(`${origins['ingest']}/api/sources`);
  expect([answer.status, answer.headers.get('x-error-code')]).toEqual([404, 'NOT_FOUND']);
  expect(await answer.json()).toEqual({ error: 'Not Found', message: expect.any(String), code: 'NOT_FOUND' });
});

test.each(['ingest', 'api'])('%s shows metrics on its ops port alone, and health on both', async (role) => {
  expect((await fetch(`${origins[role]}/metrics`)).status).toBe(404);
  expect(await (await fetch(`${origins[`${role} ops`]}/metrics`)).text()).toContain('# TYPE process_resident_memory_bytes gauge');
  for (const origin of [origins[role], origins[`${role} ops`]])
    for (const path of ['/livez', '/readyz']) expect((await fetch(`${origin}${path}`)).status).toBe(200);
});
