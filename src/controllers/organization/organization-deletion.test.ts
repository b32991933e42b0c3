import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type RunningControllers, startControllers } from '../../../test/support/controllers.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { RedisMessagePurger } from '../../data/purge/message-purger.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';

let redis: RedisServer;
let store: MemoryStore;
let controllers: RunningControllers;
let runs = 0;
let fault: Error | null = null;
let aheadMs = 0;
let prefix = '';
/** While the organization was still there. */
let purges = 0;
/** Stops the clock; null: it runs. */
let stoppedAtMs: number | null = null;
const clock: Clock = { ...systemClock, now: () => stoppedAtMs ?? systemClock.now() + aheadMs };

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  prefix = `run${++runs}:`;
  [fault, aheadMs, stoppedAtMs, purges] = [null, 0, null, 0];
  store = new MemoryStore(systemClock);
  start();
  await store.apply(
    { kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme', deletionPolicy: 'Delete' } },
    { manager: 'test' },
  );
  await shows('True Ready');
});
afterEach(() => controllers.stop());

function start(): void {
  const purger = new RedisMessagePurger({ redis: redis.client, prefix });
  controllers = startControllers({
    store,
    redis: redis.client,
    prefix,
    clock,
    purger: {
      removeDeletedCounters: (...given) => purger.removeDeletedCounters(...given),
      purgeOrganization: async (org, signal) => {
        if (fault !== null) throw fault;
        if (await isThere()) purges++;
        await purger.purgeOrganization(org, signal);
      },
    },
  });
}

function shows(ready: string): Promise<string | undefined> {
  return eventually(async () => {
    const { status } = await store.get('Organization', { name: 'acme' });
    const condition = status?.conditions?.find(({ type }) => type === 'Ready');
    expect(`${condition?.status} ${condition?.reason}`).toBe(ready);
    return condition?.message;
  });
}

const isThere = (): Promise<boolean> => store.list('Organization').then(({ items }) => items.length > 0);
const isGone = (): Promise<void> =>
  eventually(async () => expect(store.get('Organization', { name: 'acme' })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' }));

test('the status of a deleted organization that cannot be cleaned up has the reason, and the object goes once it can be', async () => {
  fault = new PosthornError('UNAVAILABLE', 'Redis does not answer');
  await store.delete('Organization', { name: 'acme' });
  expect(await shows('False PurgeFailed')).toContain('UNAVAILABLE: Redis does not answer');
  fault = null;
  await isGone();
});

test('after a minute its finalizer is removed, and an event says what was not cleaned up; errors of no known kind are not shown', async () => {
  fault = new Error('canary');
  await store.delete('Organization', { name: 'acme' });
  expect(await shows('False PurgeFailed')).not.toContain('canary');
  aheadMs = 61_000;
  await isGone();
  const [abandoned] = controllers.events.filter(({ reason }) => reason === 'PurgeAbandoned');
  expect(abandoned).toMatchObject({ type: 'Warning', message: expect.stringContaining('before its data was removed') });
});

test('an organization that was deleted long before there was a leader stays until what was under way has ended, and is purged again then', async () => {
  await controllers.stop();
  await store.delete('Organization', { name: 'acme' });
  stoppedAtMs = systemClock.now() + 20_000;
  start();
  // The second because its namespace goes.
  await eventually(() => expect(purges).toBeGreaterThan(1));
  const purgesBefore = purges;
  stoppedAtMs += 3000;
  await isGone();
  expect(purges).toBeGreaterThan(purgesBefore);
});
