import { expect } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import {
  consoleIsUnreachable,
  delivers,
  pods,
  refusesConnections,
  reportsNotReady,
  sendEvent,
  shop,
  through,
} from './broken-installation.ts';
import { type Failures, failing } from './failure.ts';
import { type Component, components } from './installation-state.ts';
import {
  areReady,
  inSystem,
  noneIsReady,
  patience,
  patienceMs,
  redisCli,
  rolledOut,
  secretValue,
  upgrade,
  upgradeFails,
} from './system-commands.ts';

/** Failures of Redis, made one after the other. */

const installation = 'posthorn:{cfg}:installation';
/** A controller writes it once everything is published. */
const complete = 'posthorn:{cfg}:complete';
/** Fills Redis. Connections, which come and go, need little beside it. */
const ballast = { key: 'ballast', bytes: 64 * 1024 * 1024 };
/** Counts the restarts of the pods of a component. */
const restarts = async (component: Component): Promise<number> => {
  const path = 'jsonpath={.items[*].status.containerStatuses[0].restartCount}';
  const counts = await inSystem('get', 'pods', '-l', `app.kubernetes.io/component=${component}`, '-o', path);
  return counts.split(' ').reduce((sum, each) => sum + Number(each), 0);
};
const noneOf = async (...roles: Component[]): Promise<void> => {
  for (const role of roles) await noneIsReady(role);
};
/** The probe of the bundled Redis lacks the other password, too: after some seconds its Service would refuse connections. */
const leadToUnreadyRedis = (publishNotReadyAddresses: boolean): Promise<string> =>
  inSystem('patch', 'service/posthorn-redis', '--type=merge', '-p', JSON.stringify({ spec: { publishNotReadyAddresses } }));
/** `redis-cli` with the password that the failure sets. */
const withAnotherPassword = (...args: string[]): Promise<string> =>
  inSystem('exec', 'statefulset/posthorn-redis', '--', 'env', 'REDISCLI_AUTH=another', 'redis-cli', ...args);
/** The source has no route, so an event that is accepted before Redis is full opens no circuit. */
const refusesEvent = (): Promise<void> =>
  eventually(
    async () =>
      expect(await sendEvent(shop, 'forbidden')).toEqual({ status: 503, code: 'UNAVAILABLE', retryAfter: expect.stringMatching(/^\d+$/) }),
    patienceMs,
  );
/** The shards notice one after the other that Redis has free memory, and refuse events until then. */
const noShardIsFull = (): Promise<void> =>
  eventually(async () => {
    const script = `local full = 0
      for _, key in ipairs(redis.call('KEYS', 'posthorn:{*}:ctl')) do full = full + redis.call('HEXISTS', key, 'full') end
      return full`;
    expect((await redisCli('EVAL', script, '0')).trim()).toBe('0');
  }, patienceMs);
/** Waits until a controller has published all resources in a Redis that has begun empty. */
const everythingIsPublished = (): Promise<void> =>
  eventually(async () => expect((await redisCli('GET', complete)).trim()).toBe('1'), patienceMs);
let memory: string;
let owner: string;
let restartsBefore: readonly number[];

export const redisFailures = {
  'the password of Redis is wrong': {
    make: async () => {
      await leadToUnreadyRedis(true);
      await redisCli('CONFIG', 'SET', 'requirepass', 'another');
      await withAnotherPassword('CLIENT', 'KILL', 'TYPE', 'normal');
    },
    mend: async () => {
      await withAnotherPassword('CONFIG', 'SET', 'requirepass', await secretValue('posthorn-redis-server', 'password'));
      await leadToUnreadyRedis(false);
    },
    kubectl: () => noneOf(...components),
    helm: () => upgradeFails(),
    readyz: () => reportsNotReady(/WRONGPASS|NOAUTH/, ...components),
    metrics: [failing('redis')],
    alerts: ['PosthornNotReady'],
    api: refusesConnections,
    console: consoleIsUnreachable,
  },
  'Redis does not answer': {
    make: () => inSystem('scale', 'statefulset/posthorn-redis', '--replicas=0'),
    mend: async () => {
      await inSystem('scale', 'statefulset/posthorn-redis', '--replicas=1');
      await inSystem('rollout', 'status', 'statefulset/posthorn-redis', patience);
      await everythingIsPublished();
    },
    kubectl: () => noneOf(...components),
    helm: async () => {
      await upgrade();
      expect(await inSystem('get', 'statefulset/posthorn-redis', '-o', 'jsonpath={.spec.replicas}')).toBe('1');
    },
    readyz: () => reportsNotReady(/unreachable/, ...components),
    metrics: [failing('redis')],
    alerts: ['PosthornNotReady'],
    api: refusesConnections,
    console: consoleIsUnreachable,
  },
  'Redis is full': {
    make: async () => {
      memory = (await redisCli('CONFIG', 'GET', 'maxmemory')).split('\n')[1] ?? '0';
      await redisCli('SETRANGE', ballast.key, String(ballast.bytes), '0');
      const used = /used_memory:(\d+)/.exec(await redisCli('INFO', 'memory'))?.[1];
      await redisCli('CONFIG', 'SET', 'maxmemory', String(Math.ceil(Number(used) / 0.88)));
    },
    mend: async () => {
      await redisCli('CONFIG', 'SET', 'maxmemory', memory);
      await redisCli('DEL', ballast.key);
      await noShardIsFull();
    },
    kubectl: async () => {
      await refusesEvent();
      for (const each of components)
        await eventually(async () => expect(new Set(await areReady(each))).toEqual(new Set(['true'])), patienceMs);
    },
    helm: 'nothing',
    readyz: async () => {
      await refusesEvent();
      await eventually(async () => {
        for (const each of await pods().readyz(...components)) expect(JSON.parse(each)).toMatchObject({ status: 'ready' });
      }, patienceMs);
    },
    metrics: [{ name: 'posthorn_redis_memory_share', labels: /./, is: (value) => value > 0.8 }],
    alerts: ['PosthornRedisFillsUp', 'PosthornIngestFails'],
    api: refusesEvent,
    console: /of its memory limit\. New events are refused with 503/,
    // The shards detect it one after the other.
    meanwhile: refusesEvent,
  },
  'Redis evicts keys': {
    make: () => redisCli('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru'),
    mend: () => redisCli('CONFIG', 'SET', 'maxmemory-policy', 'noeviction'),
    kubectl: () => noneIsReady('controller'),
    helm: () => upgradeFails(),
    readyz: () => reportsNotReady(/redis-settings.*maxmemory-policy/, 'controller'),
    metrics: [failing('redis-settings')],
    alerts: ['PosthornNotReady'],
    api: () => delivers(shop),
    console: /has maxmemory-policy allkeys-lru, which drops messages/,
  },
  'Redis holds the data of another installation': {
    make: async () => {
      owner = (await redisCli('GET', installation)).trim();
      restartsBefore = await Promise.all([restarts('controller'), restarts('delivery')]);
      await redisCli('SET', installation, 'two');
    },
    mend: async () => {
      await redisCli('SET', installation, owner);
      // New pods start at once; pods that have ended several times wait for their backoff.
      await inSystem('delete', 'pods', '-l', 'app.kubernetes.io/component in (controller,delivery)', '--grace-period=1');
      await rolledOut('posthorn-controller', 'posthorn-delivery-default');
    },
    kubectl: async () => {
      await noneOf('api', 'ingest');
      await eventually(async () => {
        const now = await Promise.all([restarts('controller'), restarts('delivery')]);
        for (const [i, before] of restartsBefore.entries()) expect(now[i]).toBeGreaterThan(before);
      }, patienceMs);
    },
    helm: () => upgradeFails(),
    readyz: () => reportsNotReady(/installation.*belongs to the installation two/, 'api', 'ingest'),
    metrics: [failing('installation')],
    alerts: ['PosthornNotReady'],
    api: async () => {
      await refusesConnections();
      for (const role of ['api', 'ingest'] as const)
        await eventually(async () => {
          const { status, headers } = await through(role, (url) =>
            fetch(`${url}/ingest/${shop.name}/orders`, { method: 'POST', body: '{}' }),
          );
          expect([role, status, headers.get('retry-after')]).toEqual([role, 503, '1']);
        }, patienceMs);
    },
    console: async () => {
      await consoleIsUnreachable();
      await eventually(async () => {
        const text = await through('api', async (url) => (await fetch(`${url}/console/`)).text());
        expect(text).toContain('This server is not connected to the Redis of its installation');
      }, patienceMs);
    },
  },
} satisfies Failures;
