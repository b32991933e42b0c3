import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { type OwnedRecordKind, type RecordByKind, recordKinds, recordLayoutVersion } from '../../core/records.ts';
import { isTakenName, RedisRegistryPublisher } from './registry-publisher.ts';

const owned = recordKinds.filter((kind): kind is OwnedRecordKind => kind !== 'organization');

let redis: RedisServer;
let publisher: RedisRegistryPublisher;
let prefix = '';
let epoch = 0;
let runs = 0;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  prefix = `run${++runs}:`;
  publisher = new RedisRegistryPublisher(redis.client, prefix);
  epoch = await publisher.mintEpoch();
});

/** Input of a publication: the owner of a record, and the sources of its index entries. */
function record<K extends OwnedRecordKind>(_: K, org: string): RecordByKind[K] {
  const made = {
    v: recordLayoutVersion,
    id: 'xyz_1',
    org,
    orgSlug: org,
    slug: 's',
    sourceId: 'src_1',
    name: 'n',
    sha256: 'aa00',
    generation: 1,
  };
  return made as unknown as RecordByKind[K];
}

test.each(owned)('the id of a %s stays the organization that published it first, also after its record is retracted', async (kind) => {
  await publisher.publish(epoch, kind, record(kind, 'org_a'));
  const foreign = { code: 'CONFLICT', details: { owner: ['org_a'] } };
  await expect(publisher.publish(epoch, kind, record(kind, 'org_b'))).rejects.toMatchObject(foreign);
  expect(await publisher.retract(epoch, kind, 'xyz_1')).toBe(true);
  await expect(publisher.publish(epoch, kind, record(kind, 'org_b'))).rejects.toMatchObject(foreign);
  expect(await publisher.get(kind, 'xyz_1')).toBeNull();
  expect(await publisher.publish(epoch, kind, record(kind, 'org_a'))).toBe(true);
});

test.each(owned)('a %s that was published before ids had owners says whose its id is', async (kind) => {
  await publisher.publish(epoch, kind, record(kind, 'org_a'));
  await redis.client.del(`${prefix}{cfg}:owners`);
  await expect(publisher.publish(epoch, kind, record(kind, 'org_b'))).rejects.toMatchObject({ details: { owner: ['org_a'] } });
  expect(await publisher.publish(epoch, kind, record(kind, 'org_a'))).toBe(false);
  await publisher.retract(epoch, kind, 'xyz_1');
  await expect(publisher.publish(epoch, kind, record(kind, 'org_b'))).rejects.toMatchObject({ code: 'CONFLICT' });
});

test.each(owned)(
  'the id of a %s that was published before ids had owners stays its organization when it is retracted first',
  async (kind) => {
    await publisher.publish(epoch, kind, record(kind, 'org_a'));
    await redis.client.del(`${prefix}{cfg}:owners`);
    await publisher.retract(epoch, kind, 'xyz_1');
    await expect(publisher.publish(epoch, kind, record(kind, 'org_b'))).rejects.toMatchObject({ details: { owner: ['org_a'] } });
  },
);

test.each(owned)('the record of a %s is not retracted for another organization', async (kind) => {
  await publisher.publish(epoch, kind, record(kind, 'org_a'));
  expect(await publisher.retract(epoch, kind, 'xyz_1', 'org_b')).toBe(false);
  expect(await publisher.get(kind, 'xyz_1')).toMatchObject({ org: 'org_a' });
  expect(await publisher.retract(epoch, kind, 'xyz_1', 'org_a')).toBe(true);
});

const keyOf = (id: string, org: string) => ({ ...record('apiKey', org), id });

test('the hash of an API key leads to the key of the organization that published it first, while that exists', async () => {
  const keyId = () => redis.client.hget(`${prefix}{cfg}:ix:api-key`, 'aa00');
  await publisher.publish(epoch, 'apiKey', keyOf('key_1', 'org_a'));
  expect(isTakenName(await publisher.publish(epoch, 'apiKey', keyOf('key_2', 'org_b')).catch((error: unknown) => error))).toBe(true);
  expect(await keyId()).toBe('key_1');
  expect(await publisher.get('apiKey', 'key_2')).toBeNull();
  // Its own organization declares it again.
  await publisher.publish(epoch, 'apiKey', keyOf('key_3', 'org_a'));
  await publisher.retract(epoch, 'apiKey', 'key_1');
  expect(await keyId()).toBe('key_3');
  await publisher.retract(epoch, 'apiKey', 'key_3');
  expect(await publisher.publish(epoch, 'apiKey', keyOf('key_2', 'org_b'))).toBe(true);
  expect(await keyId()).toBe('key_2');
});

test('an API key that takes over the hash of another organization by a change keeps what it had', async () => {
  await publisher.publish(epoch, 'apiKey', keyOf('key_1', 'org_a'));
  await publisher.publish(epoch, 'apiKey', { ...keyOf('key_2', 'org_b'), sha256: 'bb' });
  expect(isTakenName(await publisher.publish(epoch, 'apiKey', keyOf('key_2', 'org_b')).catch((error: unknown) => error))).toBe(true);
  expect(await redis.client.hgetall(`${prefix}{cfg}:ix:api-key`)).toEqual({ aa00: 'key_1', bb: 'key_2' });
});

test("an id without a record is the organization's that claims it first, and an older leader claims none", async () => {
  await publisher.claim(epoch, 'ep_1', 'org_a');
  await publisher.claim(epoch, 'ep_1', 'org_a');
  await expect(publisher.claim(epoch, 'ep_1', 'org_b')).rejects.toMatchObject({ code: 'CONFLICT', details: { owner: ['org_a'] } });
  await publisher.publish(await publisher.mintEpoch(), 'source', record('source', 'org_a'));
  await expect(publisher.claim(epoch, 'ep_2', 'org_b')).rejects.toMatchObject({ code: 'CONFLICT', details: { epoch: expect.anything() } });
  expect(await redis.client.hget(`${prefix}{cfg}:owners`, 'ep_2')).toBeNull();
});

test('a refused publication leaves no record, no index entry and no change', async () => {
  await publisher.publish(epoch, 'source', record('source', 'org_a'));
  await publisher.retract(epoch, 'source', 'xyz_1');
  const changes = await redis.client.xlen(`${prefix}{cfg}:changes`);
  await expect(publisher.publish(epoch, 'source', record('source', 'org_b'))).rejects.toMatchObject({ code: 'CONFLICT' });
  expect(await redis.client.hlen(`${prefix}{cfg}:rec:source`)).toBe(0);
  expect(await redis.client.hlen(`${prefix}{cfg}:ix:source-slug`)).toBe(0);
  expect(await redis.client.xlen(`${prefix}{cfg}:changes`)).toBe(changes);
});

test('a new leader gets the owner of every id, also of those that are more than one step of the scan', async () => {
  for (let i = 0; i < 3000; i++) await redis.client.hset(`${prefix}{cfg}:owners`, `dst_${i}`, `org_${i}`);
  const found = new Map<string, string>();
  await publisher.eachOwner((id, org) => found.set(id, org));
  expect([found.size, found.get('dst_2999')]).toEqual([3000, 'org_2999']);
});

test('records are read without an organization only by what serves all organizations', () => {
  const source = new URL('../../', import.meta.url);
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
  );
  const users = files.filter((file) => /\.getOfAny\(/.test(readFileSync(new URL(file, source), 'utf8')));
  expect(users.sort()).toEqual([
    'delivery/replays/replay-runner.ts',
    'delivery/worker/target-config-sync.ts',
    'notify/notifier.ts',
    'schedule/cron-scheduler.ts',
  ]);
});
