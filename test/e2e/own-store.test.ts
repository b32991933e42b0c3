import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from '@jest/globals';
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

async function readyz({ opsPort }: Role): Promise<[number, string]> {
  const response = await fetch(`http://127.0.0.1:${opsPort}/readyz`);
  return [response.status, await response.text()];
}

async function metric({ opsPort }: Role): Promise<string> {
  return (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
}

const refusal = 'is of the installation two, and POSTHORN_INSTALLATION is default';

test.each([['api'], ['ingest'], ['delivery']])(
  '%s does not work with the Redis of another installation, says so in /readyz, the log and a metric, and begins when it is its own',
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
    await eventually(async () => expect((await readyz(role))[0]).toBe(200));
    expect(await metric(role)).toContain('posthorn_readiness{check="installation"} 1');
  },
  60_000,
);

test.each([['api'], ['ingest'], ['delivery']])(
  '%s stops its work when the Redis that it is connected to becomes that of another installation',
  async (name) => {
    const redis = await redisOf(null);
    const role = await started(name, redis);
    await eventually(async () => expect((await readyz(role))[0]).toBe(200));
    await redis.client.set(noted, 'two');
    if (name === 'delivery') {
      expect(await role.program.ended).toBe(1);
      expect(role.program.output()).toContain(refusal);
      return;
    }
    await eventually(async () => expect(await readyz(role)).toEqual([503, expect.stringContaining(refusal)]));
    const answer = await fetch(`http://127.0.0.1:${role.port}/ingest/default/orders`, { method: 'POST', body: '{}' });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
  },
  60_000,
);

test('a role of a named installation works with a Redis that its controllers have claimed', async () => {
  const redis = await redisOf('two');
  const role = await started('ingest', redis, { POSTHORN_INSTALLATION: 'two', POSTHORN_RESOURCE_STORE: 'kubernetes' });
  await eventually(async () => expect((await readyz(role))[0]).toBe(200));
  const answer = await fetch(`http://127.0.0.1:${role.port}/ingest/default/orders`, { method: 'POST', body: '{}' });
  // No controller has published its resources yet.
  expect(await answer.text()).not.toContain('not connected to the Redis of its installation');
}, 60_000);

test('standalone refuses the Redis of another installation and says what to do', async () => {
  const redis = await redisOf('two');
  const role = await started('standalone', redis);
  expect(await role.program.ended).toBe(1);
  expect(role.program.output()).toMatch(/is of the installation two.*a Redis or a key prefix of its own/);
});
