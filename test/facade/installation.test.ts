import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newApiKey } from '../../src/core/api-key-hash.ts';
import { processName } from '../../src/data/membership/connected-processes.ts';
import { ProcessReports } from '../../src/data/membership/process-reports.ts';
import { commandConnection } from '../../src/redis/connection.ts';
import { standaloneManager } from '../../src/resources/installation-managers.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
/** As POSTHORN_API_KEY makes it. */
let operator: string;
beforeAll(async () => {
  world = await startFacadeWorld({ loopbackOrganization: 'acme' });
  await world.addOrganization('globex');
  operator = await installationKey('acme');
});
afterAll(() => world?.stop());

async function installationKey(namespace: string): Promise<string> {
  const { key, sha256, prefix } = newApiKey();
  const spec = { sha256, prefix, role: 'admin' as const };
  await world.store.apply({ kind: 'ApiKey', metadata: { name: 'admin', namespace }, spec }, { manager: standaloneManager, force: true });
  await eventually(async () => expect(await world.registry.apiKeyIdByHash(sha256)).not.toBeNull());
  return key;
}
const show = (key: string | null, headers: Record<string, string> = {}): Promise<Answer> =>
  world.request('GET', '/api/installation', { key, headers });
const configure = (name: string, value: string) => world.redis.client.config('SET', name, value);

test('the key of the installation and the browser at the machine of standalone see it, below each form of the path', async () => {
  expect((await show(operator)).body).toMatchObject({ version: expect.any(String), mode: 'standalone', unread: [] });
  expect((await world.request('GET', '/api/organizations/acme/installation', { key: operator })).status).toBe(200);
  expect((await show(null, { 'sec-fetch-site': 'same-origin' })).status).toBe(200);
  const session = await world.request('POST', '/api/sessions', { key: null, body: { credential: operator } });
  const cookie = session.headers.get('set-cookie')?.split(';')[0] ?? '';
  expect((await show(null, { cookie })).status).toBe(200);
});

test('every other key is refused with what is needed, also an admin key, one that the key of the installation made, and one of another organization with its name and field manager', async () => {
  const made = await world.request('POST', '/api/api-keys', { key: operator, body: { name: 'made', role: 'admin' } });
  expect(made.status).toBe(201);
  for (const key of [world.admin, made.body.key, await installationKey('globex'), await world.addKey('acme', { role: 'viewer' })]) {
    const { status, body } = await show(key);
    expect([status, body]).toMatchObject([403, { error: expect.anything() }]);
    expect(JSON.stringify(body)).toContain('POSTHORN_API_KEY');
  }
  expect((await show('nobody')).status).toBe(401);
});

test('a key that somebody else put in the place of the key of the installation is refused', async () => {
  const { key, sha256, prefix } = newApiKey();
  const object = { kind: 'ApiKey' as const, metadata: { name: 'admin', namespace: 'acme' }, spec: { sha256, prefix } };
  await world.store.apply(object, { manager: 'kubectl-patch', force: true });
  await eventually(async () => expect(await world.registry.apiKeyIdByHash(sha256)).not.toBeNull());
  try {
    expect((await show(key)).status).toBe(403);
  } finally {
    operator = await installationKey('acme');
  }
  expect((await show(operator)).status).toBe(200);
});

test('the limit and the policy of Redis are shown, with a warning that says what to do', async () => {
  await configure('maxmemory', String(2 ** 30));
  expect((await show(operator)).body.redis).toMatchObject({
    mode: 'single',
    servers: [{ version: expect.stringMatching(/^\d+\./), limitBytes: 2 ** 30, evictionPolicy: 'noeviction', replicas: 0 }],
  });
  await configure('maxmemory-policy', 'allkeys-lru');
  try {
    const { body } = await show(operator);
    expect(body.redis.servers[0].evictionPolicy).toBe('allkeys-lru');
    expect(body.warnings).toContainEqual({
      part: 'redis',
      message: expect.stringContaining('has maxmemory-policy allkeys-lru, which drops messages.'),
      action: 'Set maxmemory-policy noeviction.',
    });
  } finally {
    await configure('maxmemory-policy', 'noeviction');
  }
  const { body: roomy } = await show(operator);
  const [{ usedBytes }] = roomy.redis.servers;
  await configure('maxmemory', String(Math.floor(usedBytes / 0.7)));
  try {
    expect(JSON.stringify((await show(operator)).body.warnings)).toContain('of its memory limit. History is removed');
  } finally {
    await configure('maxmemory', '0');
  }
});

test('workers are shown by pool, those that miss their heartbeats with a warning, and that there is none', async () => {
  const noWorker = expect.objectContaining({ message: 'No delivery worker is alive. Events are accepted and wait.' });
  expect((await show(operator)).body.warnings).toContainEqual(noWorker);
  // A worker that could not requeue its work leaves this entry when it ends.
  await world.redis.client.zadd('test:{workers}:alive', 0, 'w_left');
  expect((await show(operator)).body.warnings).toContainEqual(noWorker);
  await world.redis.client.zrem('test:{workers}:alive', 'w_left');
  const worker = await world.startWorker();
  await eventually(async () => {
    const { pools, workers, warnings } = (await show(operator)).body;
    expect(pools).toMatchObject([{ name: 'default', workers: 1 }]);
    expect(workers).toMatchObject({ total: 1, data: [{ pool: 'default', isAlive: true, lastSeenAt: expect.any(String) }] });
    expect(warnings).not.toContainEqual(expect.objectContaining({ part: 'workers' }));
  });
  await world.redis.client.zadd('test:{workers}:alive', Date.now() - 60_000, 'w_silent@eu');
  const { body } = await show(operator);
  expect(body.pools).toMatchObject([{ name: 'default' }, { name: 'eu', workers: 0 }]);
  expect(JSON.stringify(body.warnings)).toContain('w_silent@eu misses its heartbeats');
  await world.redis.client.zrem('test:{workers}:alive', 'w_silent@eu');
  await worker.stop(0);
});

test('each version is shown with the workers and the processes that run it, with a warning while there are several', async () => {
  const several = expect.objectContaining({ message: expect.stringContaining('Several versions of Posthorn run') });
  const worker = await world.startWorker({ version: '1.3.0' });
  const api = commandConnection(world.redis.url, { name: processName({ role: 'api', prefix: 'test:', version: '1.3.0' }) });
  await api.connect();
  try {
    await eventually(async () => {
      const { versions, workers, processes, warnings } = (await show(operator)).body;
      expect(versions).toEqual([{ version: '1.3.0', workers: 1, processes: [{ role: 'api', processes: 1 }] }]);
      expect(workers.data).toMatchObject([{ version: '1.3.0' }]);
      expect(processes.data).toMatchObject([{ role: 'api', version: '1.3.0' }]);
      expect(warnings).not.toContainEqual(several);
    });
    const earlier = await world.startWorker({ version: '1.3.0-rc.1' });
    // As a worker of a release that does not report its version.
    await world.redis.client.zadd('test:{workers}:alive', Date.now() + 60_000, 'w_unknown');
    await eventually(async () => {
      const { versions, warnings } = (await show(operator)).body;
      expect(versions).toEqual([
        { version: '1.3.0', workers: 1, processes: [{ role: 'api', processes: 1 }] },
        { version: '1.3.0-rc.1', workers: 1, processes: [] },
        { version: null, workers: 1, processes: [] },
      ]);
      expect(warnings).toContainEqual({
        part: 'processes',
        message: 'Several versions of Posthorn run: 1.3.0 (workers: 1, api: 1); 1.3.0-rc.1 (workers: 1); an unknown version (workers: 1).',
        action: expect.stringContaining('Finish the rollout of all roles.'),
      });
    });
    await world.redis.client.zrem('test:{workers}:alive', 'w_unknown');
    await earlier.stop(0);
  } finally {
    await api.quit();
    await worker.stop(0);
  }
});

test('what processes report of themselves is a warning that says what to do', async () => {
  const reports = new ProcessReports({ redis: world.redis.client, prefix: 'test:' });
  const nothing = { failingChecks: {}, redisClockSkewSeconds: null, apiServerClockSkewSeconds: null, notReadyObjects: {} };
  const failingChecks = { crds: 'the CustomResourceDefinition routes.posthorn.dev lacks spec.description' };
  await reports.write({ ...nothing, role: 'controller', host: 'c-0', failingChecks, notReadyObjects: { Route: 1, Destination: 2 } });
  await reports.write({ ...nothing, role: 'controller', host: 'c-1', notReadyObjects: { Route: 2 }, apiServerClockSkewSeconds: 61.4 });
  await reports.write({ ...nothing, role: 'delivery', host: 'd-0', redisClockSkewSeconds: -7.2, apiServerClockSkewSeconds: 4.9 });
  const { body } = await show(operator);
  const reported = body.warnings.filter(({ part }: { part: string }) => part === 'processes' || part === 'resources');
  const behind = 'Retries and cron jobs are early or late, and receivers refuse signatures.';
  expect(reported.map(({ part, message }: { part: string; message: string }) => [part, message])).toEqual([
    ['processes', `The process controller on c-0 is not ready: crds: ${failingChecks.crds}.`],
    ['processes', `The clock of controller on c-1 is 61 s ahead of that of the API server. ${behind}`],
    ['processes', `The clock of delivery on d-0 is 7 s behind that of Redis. ${behind}`],
    ['resources', 'Resources are not Ready: Destination 2, Route 2. What was in force before stays in force.'],
  ]);
  expect(reported[0].action).toContain('Apply the CustomResourceDefinitions of this release');
  for (const [role, host] of [
    ['controller', 'c-0'],
    ['controller', 'c-1'],
    ['delivery', 'd-0'],
  ] as const)
    await reports.remove({ role, host });
  expect(JSON.stringify((await show(operator)).body.warnings)).not.toMatch(/clock|not ready|not Ready/);
});

test('standalone has no replicas and no conditions of pools, and nobody misses them', async () => {
  const worker = await world.startWorker();
  await eventually(async () => {
    const { pools, warnings, unread } = (await show(operator)).body;
    expect(pools).toEqual([{ name: 'default', workers: 1, slots: expect.any(Number), replicas: null, conditions: null }]);
    expect([unread, JSON.stringify(warnings)]).toEqual([[], expect.not.stringContaining('DeliveryPool')]);
  });
  await worker.stop(0);
});

test('what cannot be read is null and says why, and the rest is shown, without anything of an organization', async () => {
  await world.redis.client.call('ACL', 'SETUSER', 'default', '-client|list');
  try {
    const { status, body, text } = await show(operator);
    expect([status, body.processes, body.shards]).toMatchObject([200, null, { total: 1, data: [{ shard: 0, unfinished: 0 }] }]);
    expect(body.unread).toEqual([{ part: 'processes', reason: expect.stringContaining('allow the command CLIENT LIST') }]);
    expect(text).not.toMatch(/acme|globex|org_/);
  } finally {
    await world.redis.client.call('ACL', 'SETUSER', 'default', '+client|list');
  }
});
