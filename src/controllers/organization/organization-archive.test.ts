import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type RunningControllers, startControllers } from '../../../test/support/controllers.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import type { Clock } from '../../core/clock.ts';
import { ArchiveFailures } from '../../data/history/archive-failures.ts';
import { MessageArchive } from '../../data/history/message-archive.ts';
import { registryKeys } from '../../data/registry/registry-keys.ts';
import { hashFields } from '../../data/shard/hash-fields.ts';
import { shardBase } from '../../data/shard/shard-keys.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { runArchiveHealth } from '../health/archive-health.ts';
import { idOf } from '../held-ids.ts';

const prefix = 'test:';
const options = { manager: 'test', force: true };
const archive = { destinationRef: { name: 'keep' } };
/** Checks often, and sees the time of the system. */
const hasty: Clock = { ...systemClock, now: () => systemClock.now(), sleep: (_, signal) => systemClock.sleep(20, signal) };
let redis: RedisServer;
let store: MemoryStore;
let controllers: RunningControllers;
let health: { end: AbortController; ended: Promise<void> };

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  store = new MemoryStore(systemClock);
  controllers = startControllers({ store, redis: redis.client, prefix });
  const end = new AbortController();
  const watching = {
    caches: controllers.caches,
    archiveFailures: new ArchiveFailures({ redis: redis.client, prefix }),
    recorder: { record: (event: (typeof controllers.events)[number]) => void controllers.events.push(event) },
    clock: hasty,
    logger: silentLogger,
    store,
  };
  health = { end, ended: runArchiveHealth(watching, end.signal) };
});
afterEach(async () => {
  health.end.abort();
  await health.ended;
  await controllers.stop();
});

const put = (spec: object = {}) =>
  store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme', ...spec } }, options);
const putDestination = (spec: object) => store.apply({ kind: 'Destination', metadata: { namespace: 'acme', name: 'keep' }, spec }, options);
const condition = async (type: string) => {
  const { status } = await store.get('Organization', { name: 'acme' });
  const found = status?.conditions?.find((each) => each.type === type);
  return found === undefined ? undefined : `${found.status} ${found.reason}`;
};
const record = async () => controllers.registry.get('organization', idOf('Organization', await put({ archive })));

test('an archive is in force with its warehouse; without one the organization reports it and is in force all the same', async () => {
  await put({ archive });
  await eventually(async () => expect(await condition('ResolvedRefs')).toBe('False DestinationNotFound'));
  expect(await condition('Programmed')).toBe('True Programmed');
  expect(await condition('Ready')).toBe('False DestinationNotFound');
  expect((await record())?.archive).toEqual({ destinationId: null });
  await putDestination({ http: { url: 'https://shop.example/' } });
  await eventually(async () => expect(await condition('ResolvedRefs')).toBe('False DestinationNotWarehouse'));
  await store.delete('Destination', { namespace: 'acme', name: 'keep' });
  await eventually(async () => expect(await condition('ResolvedRefs')).toBe('False DestinationNotFound'));
  const s3 = { bucket: 'history', region: 'eu-west-1' };
  const warehouse = await putDestination({ type: 's3', s3, warehouse: { identity: 'platform' } });
  await eventually(async () => expect(await condition('Ready')).toBe('True Ready'));
  expect((await record())?.archive).toEqual({ destinationId: idOf('Destination', warehouse) });
  expect(await redis.client.smembers(registryKeys(prefix).index('archives'))).toHaveLength(1);
  await store.delete('Destination', { namespace: 'acme', name: 'keep' });
  await eventually(async () => expect(await condition('ResolvedRefs')).toBe('False DestinationNotFound'));
  expect((await record())?.archive).toEqual({ destinationId: null });
});

test('the condition Archiving reports that nothing can be written, and that something was lost, with an event each', async () => {
  await put({ archive });
  await eventually(async () => expect(await condition('Archiving')).toBe('True Archiving'));
  const org = idOf('Organization', await put({ archive }));
  const limits = { records: 1000, bytes: 1_000_000, ageMs: 0 };
  const written = new MessageArchive({ redis: redis.client, prefix, limits });
  await written.set(org, null);
  await written.failed(org, 'the store answered 403 (AccessDenied)', { firstMs: 1000, maxMs: 1000 });
  await eventually(async () => expect(await condition('Archiving')).toBe('False CannotBeWritten'));
  await eventually(() =>
    expect(controllers.events.at(-1)).toMatchObject({
      type: 'Warning',
      reason: 'CannotBeWritten',
      message: expect.stringContaining('the store answered 403 (AccessDenied)'),
    }),
  );
  await redis.client.hset(`${shardBase(prefix, 0)}ar:${org}`, hashFields.archive.lost, 7, hashFields.archive.lastLossMs, systemClock.now());
  await eventually(async () => expect(await condition('Archiving')).toBe('False HistoryLost'));
  await eventually(() =>
    expect(controllers.events.at(-1)).toMatchObject({ type: 'Warning', message: expect.stringMatching(/^7 messages were removed/) }),
  );
  await put();
  await eventually(async () => expect(await condition('Archiving')).toBeUndefined());
});
