import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from '@jest/globals';
import { startCuttableLine } from '../support/cuttable-line.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

const noted = 'posthorn:{cfg}:installation';
const encryptionKeys = `k1:${randomBytes(32).toString('base64')}`;
const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Role {
  program: Program;
  port: number;
  opsPort: number;
}

async function started(role: string, redis: RedisServer, environment: Record<string, string> = {}): Promise<Role> {
  const [port, opsPort] = [await freePort(), await freePort()];
  const program = startProgram([role], {
    POSTHORN_REDIS_URL: redis.url,
    POSTHORN_RESOURCE_STORE: 'redis',
    POSTHORN_ENCRYPTION_KEYS: encryptionKeys,
    POSTHORN_PORT: String(port),
    POSTHORN_OPS_PORT: String(opsPort),
    ...environment,
  });
  cleanups.push(() => program.stop());
  return { program, port, opsPort };
}

async function redisOf(installation: string | null): Promise<RedisServer> {
  const redis = await startRedis();
  cleanups.push(() => redis.stop());
  if (installation !== null) await redis.client.set(noted, installation);
  return redis;
}

/** Marks everything as published, as a leader does. Ingest is not ready before. */
async function published(redis: RedisServer): Promise<void> {
  await redis.client.set('posthorn:{cfg}:complete', '1');
}

async function readyz({ opsPort }: Role): Promise<[number, string]> {
  const response = await fetch(`http://127.0.0.1:${opsPort}/readyz`);
  return [response.status, await response.text()];
}

async function metric({ opsPort }: Role): Promise<string> {
  return (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
}

const refusal = 'belongs to the installation two, and POSTHORN_INSTALLATION is default';
/** A busy machine starts a process in many seconds. */
const patienceMs = 90_000;
const becomesReady = (role: Role): Promise<void> => eventually(async () => expect((await readyz(role))[0]).toBe(200), patienceMs);
const becomesRefused = (role: Role): Promise<void> =>
  eventually(async () => expect(await readyz(role)).toEqual([503, expect.stringContaining(refusal)]), patienceMs);

test.each([['api'], ['ingest'], ['delivery']])(
  '%s does not work with the Redis of another installation, reports it in /readyz, the log and a metric, and begins when it is its own',
  async (name) => {
    const redis = await redisOf('two');
    const role = await started(name, redis);
    await role.program.waitForOutput(/Redis holds the data of another installation/);
    expect(role.program.output()).toContain(refusal);
    const [status, body] = await readyz(role);
    expect([status, body]).toEqual([503, expect.stringContaining(refusal)]);
    expect(await metric(role)).toContain('posthorn_readiness{check="installation"} 0');
    if (name !== 'delivery')
      for (const path of name === 'api' ? ['/api/sources', '/ingest/default/orders'] : ['/ingest/default/orders']) {
        const answer = await fetch(`http://127.0.0.1:${role.port}${path}`, { method: 'POST', body: '{}' });
        expect([path, answer.status, await answer.json()]).toEqual([path, 503, expect.objectContaining({ code: 'UNAVAILABLE' })]);
      }
    expect(await redis.client.keys('*')).toEqual([noted]);
    expect(role.program.output().match(/Redis holds the data of another installation/g)).toHaveLength(1);

    await redis.client.set(noted, 'default');
    await published(redis);
    await becomesReady(role);
    expect(await metric(role)).toContain('posthorn_readiness{check="installation"} 1');
  },
  240_000,
);

test.each([['api'], ['ingest'], ['delivery'], ['controller']])(
  '%s stops its work when the Redis that it is connected to becomes that of another installation',
  async (name) => {
    const redis = await redisOf(null);
    await published(redis);
    const role = await started(name, redis);
    await becomesReady(role);
    await redis.client.set(noted, 'two');
    if (name === 'delivery' || name === 'controller') {
      expect(await role.program.ended).toBe(1);
      expect(role.program.output()).toContain(refusal);
      return;
    }
    await becomesRefused(role);
    const answer = await fetch(`http://127.0.0.1:${role.port}/ingest/default/orders`, { method: 'POST', body: '{}' });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
  },
  240_000,
);

test.each([['api'], ['ingest'], ['delivery'], ['controller']])(
  '%s writes nothing into the Redis of another installation that takes the place of its own',
  async (name) => {
    const [own, foreign] = [await redisOf(null), await redisOf('two')];
    await published(own);
    const target = { host: '127.0.0.1', port: own.port };
    const line = await startCuttableLine(target);
    cleanups.push(() => line.stop());
    const role = await started(name, own, { POSTHORN_REDIS_URL: `redis://127.0.0.1:${line.port}` });
    await becomesReady(role);
    if (name === 'controller') expect(await own.client.get(noted)).toBe('default');
    const commands: string[] = [];
    const monitor = await foreign.client.duplicate().monitor();
    cleanups.push(async () => monitor.disconnect());
    monitor.on('monitor', (_, args: string[]) => void commands.push(args.slice(0, 2).join(' ').toLowerCase()));
    line.cut();
    target.port = foreign.port;
    line.mend();
    if (name === 'delivery' || name === 'controller') {
      expect(await role.program.ended).toBe(1);
      expect(role.program.output()).toContain(refusal);
    } else {
      await becomesRefused(role);
      const answer = await fetch(`http://127.0.0.1:${role.port}/ingest/default/orders`, { method: 'POST', body: '{}' });
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
    }
    const setup = /^(auth|client|hello|info|select)( |$)/;
    const asked = () => [...new Set(commands.filter((command) => !setup.test(command)))];
    // Controllers look first whether a later release has migrated the data.
    const expected = name === 'controller' ? ['get posthorn:{cfg}:layout', `set ${noted}`] : [`get ${noted}`];
    // The monitor's report may come after the end of the process.
    await eventually(() => expect(asked().length).toBeGreaterThanOrEqual(expected.length));
    expect(asked()).toEqual(expected);
    expect(await foreign.client.keys('*')).toEqual([noted]);
  },
  240_000,
);

test('controllers claim an empty Redis that takes the place of their own before they write anything else', async () => {
  const [own, empty] = [await redisOf(null), await redisOf(null)];
  const target = { host: '127.0.0.1', port: own.port };
  const line = await startCuttableLine(target);
  cleanups.push(() => line.stop());
  const role = await started('controller', own, { POSTHORN_REDIS_URL: `redis://127.0.0.1:${line.port}` });
  await becomesReady(role);
  const written: string[] = [];
  const monitor = await empty.client.duplicate().monitor();
  cleanups.push(async () => monitor.disconnect());
  const reads = /^(auth|client|hello|info|select|get|time|config)$/i;
  monitor.on('monitor', (_, [command = '', key = '']: string[]) => void (reads.test(command) || written.push(`${command} ${key}`)));
  line.cut();
  target.port = empty.port;
  line.mend();
  await eventually(() => expect(written.length).toBeGreaterThan(3), patienceMs);
  expect(written[0]?.toLowerCase()).toBe(`set ${noted}`);
  expect(await empty.client.get(noted)).toBe('default');
}, 240_000);

test.each([['api'], ['ingest']])('%s accepts no event before Redis has reported whose it is', async (name) => {
  const redis = await redisOf('two');
  const goOn = redis.freeze();
  try {
    const role = await started(name, redis);
    await role.program.waitForOutput(/listening/);
    const answer = await fetch(`http://127.0.0.1:${role.port}/ingest/default/orders`, { method: 'POST', body: '{}' });
    expect([answer.status, answer.headers.get('retry-after'), await answer.json()]).toEqual([
      503,
      '1',
      expect.objectContaining({ code: 'UNAVAILABLE', message: expect.stringContaining('not connected to the Redis of its installation') }),
    ]);
  } finally {
    goOn();
  }
});

test('a role of a named installation works with a Redis that its controllers have claimed', async () => {
  const redis = await redisOf('two');
  const role = await started('ingest', redis, { POSTHORN_INSTALLATION: 'two', POSTHORN_RESOURCE_STORE: 'kubernetes' });
  await published(redis);
  await becomesReady(role);
  const answer = await fetch(`http://127.0.0.1:${role.port}/ingest/default/orders`, { method: 'POST', body: '{}' });
  expect(answer.status).toBe(404);
}, 240_000);

test('ingest is not ready before a controller has published all resources, and /readyz gives the reason', async () => {
  const redis = await redisOf(null);
  const role = await started('ingest', redis);
  const reason = '"configuration":{"ok":false,"detail":"no controller has published';
  await eventually(async () => expect(await readyz(role)).toEqual([503, expect.stringContaining(reason)]), patienceMs);
  expect(await metric(role)).toContain('posthorn_readiness{check="configuration"} 0');
  const events = `http://127.0.0.1:${role.port}/ingest/default/orders`;
  const answer = await fetch(events, { method: 'POST', body: '{}' });
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
  await published(redis);
  await becomesReady(role);
  expect((await fetch(events, { method: 'POST', body: '{}' })).status).toBe(404);
  await redis.client.flushall();
  // The Service keeps its endpoints, which send Retry-After.
  await eventually(async () => expect((await fetch(events, { method: 'POST', body: '{}' })).status).toBe(503));
  expect((await readyz(role))[0]).toBe(200);
}, 240_000);

test('standalone refuses the Redis of another installation and says what to do', async () => {
  const redis = await redisOf('two');
  const role = await started('standalone', redis);
  expect(await role.program.ended).toBe(1);
  expect(role.program.output()).toMatch(/belongs to the installation two.*a Redis or a key prefix of its own/);
});
