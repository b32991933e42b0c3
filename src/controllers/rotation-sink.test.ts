import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { testKeyring } from '../../test/support/controllers.ts';
import { type CrashMoment, crashAtEveryCommand } from '../../test/support/crashing-client.ts';
import { takeOwnEvents } from '../../test/support/own-events.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, sourceRecord } from '../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import type { HttpDestinationRecord, SourceRecord } from '../core/records.ts';
import { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { OwnEventLog } from '../data/queue/own-event-log.ts';
import { readHasOwnSource } from '../data/registry/own-sources.ts';
import { RedisRegistryPublisher } from '../data/registry/registry-publisher.ts';
import type { RedisClient } from '../redis/connection.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { FencedPublisher } from './fenced-publisher.ts';
import { IdOwners } from './id-owners.ts';
import { registrySink } from './record-sink.ts';
import { rotationSink } from './rotation-sink.ts';

const prefix = 'test:';
const org = 'org_a';
const shards = 2;
const validUntilMs = 4_000_000_000_000;
const ownSource = sourceRecord({ id: 'src_own', slug: 'posthorn', provider: 'posthorn' });
const otherKeyring = new Keyring([{ id: 'k2', key: Buffer.alloc(32, 2) }]);
let redis: RedisServer;
let registry: RecordRegistry;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(() => prepared());

async function prepared(own: SourceRecord | null = ownSource): Promise<void> {
  await redis.client.flushall();
  registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  if (own === null) return;
  registry.put('source', own);
  await new RedisRegistryPublisher(redis.client, prefix).publish(1, 'source', own);
}

/** The sinks of a leader over this client. */
function leaderOn(client: RedisClient = redis.client, by: string | null = null) {
  const publisher = new FencedPublisher(new RedisRegistryPublisher(client, prefix), 1, new IdOwners());
  const notes = new OwnEventLog({ redis: client, prefix });
  const leaderEvents = { notes, hasOwnSource: (id: string) => readHasOwnSource({ redis: client, prefix }, id) };
  const options = { publisher, keyring: testKeyring, clock: systemClock, leaderEvents, shards, rotatedBy: async () => by };
  return {
    source: rotationSink('source', registrySink(publisher, 'source'), options),
    destination: rotationSink('destination', registrySink(publisher, 'destination'), options),
  };
}
const stored = () => new RedisRegistryPublisher(redis.client, prefix).get('source', 'src_a');
const noted = () => takeOwnEvents(redis.client, { prefix, shards, registry });
const seal = (kind: 'source' | 'destination', text: string, keyring = testKeyring): string =>
  keyring.seal(text, recordSealingContext(org, kind, kind === 'source' ? 'src_a' : 'dst_a', 'signingSecrets'));
const [one, two, three] = ['one', 'two', 'three'].map((text) => seal('source', text));
const source = (signingSecrets: (string | undefined)[], changes: Partial<SourceRecord> = {}): SourceRecord =>
  sourceRecord({ signingSecrets: signingSecrets.map(String), ...changes });
const destination = (...signingSecrets: string[]): HttpDestinationRecord =>
  destinationRecord({ url: 'https://a.example/', signingSecrets });

test('the rotated secret of a source is reported, once, with the end of the old one, and nothing of the secret', async () => {
  const sink = leaderOn().source;
  await sink.publish(source([one]));
  const rotated = source([two], { previousSigningSecrets: { sealed: [String(one)], validUntilMs } });
  const beforeMs = Date.now();
  for (let i = 0; i < 2; i++) await sink.publish(rotated);
  const [event, ...more] = await noted();
  expect(more).toEqual([]);
  expect(event?.payload).toMatchObject({ type: 'secret.rotated', organization: org });
  expect(event?.payload.data).toEqual({
    kind: 'source',
    sourceId: 'src_a',
    rotatedAt: event?.payload['occurredAt'],
    previousSecretExpiresAt: '2096-10-02T07:06:40.000Z',
  });
  expect(Date.parse(String(event?.payload['occurredAt']))).toBeGreaterThanOrEqual(beforeMs);
  expect(await stored()).toEqual(rotated);
});

test('the public key of a source that is replaced is reported, with the end of the old one', async () => {
  const sink = leaderOn().source;
  const [old, current] = ['whpk_b2xk', 'whpk_bmV3'];
  await sink.publish(source([], { publicKeys: [old] }));
  await sink.publish(source([], { publicKeys: [current], previousSigningSecrets: { sealed: [], publicKeys: [old], validUntilMs } }));
  expect((await noted()).map(({ payload }) => payload.data)).toEqual([
    expect.objectContaining({ kind: 'source', sourceId: 'src_a', previousSecretExpiresAt: '2096-10-02T07:06:40.000Z' }),
  ]);
});

test('the rotated secret of a destination is reported; while the Secret has the old one, too, that has no end', async () => {
  const sink = leaderOn().destination;
  const [old, current] = [seal('destination', 'whsec_b2xk'), seal('destination', 'whsec_bmV3')];
  await sink.publish(destination(old));
  await sink.publish(destination(current, old));
  await sink.publish(destination(current));
  await sink.publish(destination(old));
  const data = (await noted()).map(({ payload }) => payload.data);
  const of = (previousSecretExpiresAt: string | null) =>
    expect.objectContaining({ kind: 'destination', destinationId: 'dst_a', previousSecretExpiresAt });
  expect(data).toEqual([of('9999-12-31T23:59:59.000Z'), of(null)]);
});

describe('nothing is reported', () => {
  const key = seal('destination', `whsk_${Buffer.alloc(64, 1).toString('base64')}`);
  const secret = seal('destination', 'whsec_b2xk');
  test.each<[string, HttpDestinationRecord[]]>([
    ['of a first secret', [destination(), destination(secret)]],
    ['of a secret that is taken away', [destination(secret), destination()]],
    ['of another change', [destination(secret), { ...destination(secret), name: 'other' }]],
    ['of the same secret under another envelope', [destination(secret), destination(seal('destination', 'whsec_b2xk'))]],
    ['of a key that replaces a secret with the signature scheme', [destination(secret), destination(key)]],
    ['of a secret that does not open', [destination(seal('destination', 'whsec_eA==', otherKeyring)), destination(secret)]],
  ])('%s', async (_, records) => {
    const sink = leaderOn().destination;
    for (const record of records) await sink.publish(record);
    expect(await noted()).toEqual([]);
  });

  test.each<[string, SourceRecord | null]>([
    ['without a source for it', null],
    ['with a disabled source for it', { ...ownSource, enabled: false }],
  ])('%s', async (_, own) => {
    await prepared(own);
    const sink = leaderOn().source;
    await sink.publish(source([one]));
    await sink.publish(source([two]));
    expect(await noted()).toEqual([]);
    expect(await stored()).toEqual(source([two]));
  });
});

test.each<CrashMoment>(['before', 'after'])('a rotation is one event when the leader dies %s any of its commands', async (moment) => {
  await crashAtEveryCommand(redis.client, moment, {
    prepare: async () => {
      await prepared();
      await leaderOn().source.publish(source([one]));
    },
    work: (client) => leaderOn(client).source.publish(source([two])),
    look: async () => {
      await leaderOn().source.publish(source([two]));
      expect(new Set((await noted()).map(({ id }) => id)).size).toBe(1);
      expect(await stored()).toEqual(source([two]));
    },
  });
});

test('the manager that rotated a secret is reported, also by the next leader', async () => {
  const asked: string[] = [];
  await crashAtEveryCommand(redis.client, 'after', {
    prepare: async () => {
      await prepared();
      await leaderOn().source.publish(source([one]));
    },
    work: (client) => leaderOn(client, 'kubectl-edit').source.publish(source([two])),
    look: async () => {
      await leaderOn(redis.client, 'other').source.publish(source([two]));
      const managers = new Set((await noted()).map(({ payload }) => String(payload.data['by'])));
      expect(managers.size).toBe(1);
      asked.push(...managers);
    },
  });
  expect(new Set(asked)).toEqual(new Set(['kubectl-edit', 'other']));
});

test('a rotation that is still to be reported is reported before the next one', async () => {
  const untoldRotation = { atMs: 1_700_000_000_000, shard: 1, previousSecretExpiresAt: null };
  await new RedisRegistryPublisher(redis.client, prefix).publish(1, 'source', source([two], { untoldRotation }));
  await leaderOn().source.publish(source([three]));
  expect(new Set((await noted()).map(({ id }) => id)).size).toBe(2);
  expect(await stored()).toEqual(source([three]));
});
