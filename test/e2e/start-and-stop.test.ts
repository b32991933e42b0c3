import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { version } from '../../src/cmd/version.ts';
import { earlierProcesses, processName } from '../../src/data/membership/connected-processes.ts';
import { storeLayout } from '../../src/data/registry/store-layout.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

const cleanups: (() => Promise<unknown> | undefined)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const encryptionKeys = `k1:${randomBytes(32).toString('base64')}`;

function program(args: string[], environment: Record<string, string>): Program {
  const started = startProgram(args, { POSTHORN_ENCRYPTION_KEYS: encryptionKeys, ...environment });
  cleanups.push(() => started.stop());
  return started;
}

async function redisServer(args?: string[]): Promise<RedisServer> {
  const redis = await startRedis(args);
  cleanups.push(() => redis.stop());
  return redis;
}

async function occupiedPort(): Promise<number> {
  const server: Server = createServer();
  await new Promise<void>((resolve) => server.listen(0, resolve));
  cleanups.push(() => new Promise((resolve) => server.close(resolve)));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function readyz(port: number): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`http://127.0.0.1:${port}/readyz`);
  return { status: response.status, body: await response.json() };
}

describe('a role', () => {
  test('a role waits for a Redis that is unreachable, reports it once, and is ready when it comes', async () => {
    const redis = await redisServer();
    await redis.kill('SIGKILL');
    const port = await freePort();
    const delivery = program(['delivery'], { POSTHORN_REDIS_URL: redis.url, POSTHORN_OPS_PORT: String(port) });
    await delivery.waitForOutput(/Redis is unreachable/);
    await new Promise((resolve) => setTimeout(resolve, 2000));
    expect(delivery.output().match(/Redis is unreachable/g)).toHaveLength(1);
    expect(await readyz(port)).toMatchObject({
      status: 503,
      body: { checks: { redis: { ok: false, detail: expect.stringContaining(`127.0.0.1:${redis.port}`) } } },
    });
    expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBe(200);
    await redis.start();
    await eventually('the worker to be ready', 30_000, async () => (await readyz(port)).status === 200);
    await delivery.waitForOutput(/Redis is reachable again/);
    await eventually('a connection for commands again', 30_000, async () => (await redis.client.ping().catch(() => undefined)) && true);
    expect(String(await redis.client.call('CLIENT', 'LIST'))).toContain(
      ` name=${processName({ role: 'delivery', prefix: 'posthorn:', version })} `,
    );
    expect(await earlierProcesses({ redis: redis.client, prefix: 'posthorn:' })).toEqual([]);
    delivery.signal('SIGTERM');
    expect(await delivery.ended).toBe(0);
  });

  test('a role that stops while it waits for Redis ends at once with 0', async () => {
    for (const role of ['delivery', 'api', 'ingest', 'controller']) {
      const environment = {
        POSTHORN_REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
        POSTHORN_OPS_PORT: '0',
        POSTHORN_PORT: String(await freePort()),
        POSTHORN_RESOURCE_STORE: 'redis',
      };
      const waiting = program([role], environment);
      await waiting.waitForOutput(/Redis is unreachable/);
      waiting.signal('SIGTERM');
      expect({ role, ended: await waiting.ended }).toEqual({ role, ended: 0 });
    }
  });

  test('a role says that its port is in use and ends with 1', async () => {
    const port = await occupiedPort();
    const redis = await redisServer();
    for (const role of ['api', 'ingest']) {
      const started = program([role], {
        POSTHORN_REDIS_URL: redis.url,
        POSTHORN_PORT: String(port),
        POSTHORN_RESOURCE_STORE: 'redis',
        POSTHORN_OPS_PORT: '0',
      });
      expect({ role, ended: await started.ended }).toEqual({ role, ended: 1 });
      expect(started.output()).toContain(`port ${port} is in use`);
    }
    const delivery = program(['delivery'], { POSTHORN_REDIS_URL: redis.url, POSTHORN_OPS_PORT: String(port) });
    expect(await delivery.ended).toBe(1);
    expect(delivery.output()).toContain('POSTHORN_OPS_PORT');
  });

  test('a role refuses a Redis that would drop messages', async () => {
    const redis = await redisServer(['--save', '', '--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru']);
    const delivery = program(['delivery'], { POSTHORN_REDIS_URL: redis.url, POSTHORN_OPS_PORT: '0' });
    expect(await delivery.ended).toBe(1);
    expect(delivery.output()).toContain('noeviction');
  });

  test('a role refuses a Redis that a later release has migrated, says what to do, and changes nothing in it', async () => {
    const redis = await redisServer();
    await redis.client.set('posthorn:{cfg}:layout', String(storeLayout + 1));
    const directory = mkdtempSync(join(tmpdir(), 'posthorn-e2e-'));
    cleanups.push(async () => rmSync(directory, { recursive: true, force: true }));
    const codes = { delivery: 1, api: 1, ingest: 1, controller: 1, standalone: 1, check: 2, rekey: 2, migrate: 2 };
    await Promise.all(
      Object.entries(codes).map(async ([name, code]) => {
        const refused = program([name], {
          POSTHORN_REDIS_URL: redis.url,
          POSTHORN_RESOURCE_STORE: 'redis',
          POSTHORN_OPS_PORT: String(await freePort()),
          POSTHORN_PORT: String(await freePort()),
          POSTHORN_DATA_DIR: directory,
        });
        expect({ name, code: await refused.ended }).toEqual({ name, code });
        expect(refused.output()).toMatch(/layout \d+, to which a later release has migrated it.*run the release that has migrated it/);
      }),
    );
    expect(await redis.client.keys('*')).toEqual(['posthorn:{cfg}:layout']);
  }, 120_000);

  test('controllers refuse a Redis that is of another installation, and change nothing in it', async () => {
    const redis = await redisServer();
    await redis.client.set('posthorn:{cfg}:installation', 'two');
    const controller = program(['controller'], {
      POSTHORN_REDIS_URL: redis.url,
      POSTHORN_RESOURCE_STORE: 'redis',
      POSTHORN_OPS_PORT: String(await freePort()),
    });
    expect(await controller.ended).toBe(1);
    expect(controller.output()).toContain('belongs to the installation two, and POSTHORN_INSTALLATION is default');
    expect(await redis.client.keys('*{cfg}*')).toEqual(['posthorn:{cfg}:installation']);
  });

  test('lists every mistake of its configuration and ends with 2', async () => {
    const wrong = startProgram(['api'], { POSTHORN_PORT: 'http', POSTHORN_LOG_LEVEL: 'loud' });
    expect(await wrong.ended).toBe(2);
    for (const name of ['POSTHORN_PORT', 'POSTHORN_LOG_LEVEL', 'POSTHORN_REDIS_URL', 'POSTHORN_ENCRYPTION_KEYS'])
      expect(wrong.output()).toContain(name);
  });

  test('a role that is unknown is told the usage and ends with 2', async () => {
    const wrong = startProgram(['deliveries']);
    expect(await wrong.ended).toBe(2);
    expect(wrong.output()).toMatch(/unknown role deliveries[\s\S]*standalone/);
  });
});

describe('standalone', () => {
  test.each(['POSTHORN_PORT', 'POSTHORN_INGEST_PORT'])(
    'says that the port of %s is in use and ends with 1 before it starts anything',
    async (name) => {
      const directory = mkdtempSync(join(tmpdir(), 'posthorn-e2e-'));
      cleanups.push(async () => rmSync(directory, { recursive: true, force: true }));
      const port = await occupiedPort();
      const environment = { POSTHORN_PORT: String(await freePort()), POSTHORN_DATA_DIR: directory, [name]: String(port) };
      const standalone = program(['standalone'], environment);
      expect(await standalone.ended).toBe(1);
      expect(standalone.output()).toContain(`posthorn: port ${port} is in use: stop what listens there or set ${name}`);
    },
  );

  test('names a manifests directory that does not exist', async () => {
    const standalone = program(['standalone', '--manifests', '/does/not/exist'], { POSTHORN_PORT: String(await freePort()) });
    expect(await standalone.ended).toBe(1);
    expect(standalone.output()).toContain('/does/not/exist does not exist');
  });
});
