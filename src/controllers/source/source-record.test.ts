import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type RunningControllers, startControllers, testKeyring } from '../../../test/support/controllers.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import type { SourceRecord } from '../../core/records.ts';
import { recordSealingContext } from '../../core/sealing-contexts.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { MemoryStore } from '../../store/memory/memory-store.ts';
import { idOf } from '../held-ids.ts';

const prefix = 'test:';
const metadata = { name: 'orders', namespace: 'acme' };
const manager = { manager: 'test', force: true };

let redis: RedisServer;
let store: MemoryStore;
let controllers: RunningControllers;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
  store = new MemoryStore(systemClock);
  controllers = startControllers({ store, redis: redis.client, prefix });
  await organization({});
});
afterEach(() => controllers.stop());

const organization = (spec: object) =>
  store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme', ...spec } }, manager);
const source = (spec: object) => eventually(() => store.apply({ kind: 'Source', metadata, spec }, manager));
const secret = (name: string, values: Record<string, string>) =>
  eventually(() => {
    const data = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]));
    return store.apply({ kind: 'Secret', metadata: { name, namespace: 'acme' }, data }, manager);
  });
const recordOf = async (): Promise<SourceRecord> => {
  const record = await controllers.registry.get('source', idOf('Source', await store.get('Source', metadata)));
  if (record === null) throw new Error('there is no record');
  return record;
};
const reasonOf = async (): Promise<string | undefined> =>
  (await store.get('Source', metadata)).status?.conditions?.find(({ type }) => type === 'Ready')?.reason;

test('the record holds what the source takes in', async () => {
  await source({
    provider: 'custom',
    verification: { header: 'X-Signed' },
    rateLimitPerMinute: 7,
    ipFilter: { mode: 'both', allowlist: ['10.0.0.0/8'], denylist: ['10.1.0.0/16'] },
    dedup: { strategy: 'provider_id', header: 'X-Delivery', windowHours: 2 },
  });
  await eventually(async () => {
    expect(await recordOf()).toMatchObject({
      verification: { algorithm: 'sha256', header: 'x-signed', encoding: 'hex', prefix: '' },
      rateLimitPerMinute: 7,
      ipFilter: { allow: ['10.0.0.0/8'], deny: ['10.1.0.0/16'] },
      dedup: { strategy: 'provider_id', header: 'x-delivery', windowHours: 2 },
    });
  });
  await source({ ipFilter: { mode: 'denylist', allowlist: ['10.0.0.0/8'], denylist: ['10.1.0.0/16'] } });
  await eventually(async () => expect((await recordOf()).ipFilter).toEqual({ allow: null, deny: ['10.1.0.0/16'] }));
  await source({ ipFilter: { mode: 'allowlist', allowlist: ['10.0.0.0/8'], denylist: ['10.1.0.0/16'] } });
  await eventually(async () => expect((await recordOf()).ipFilter).toEqual({ allow: ['10.0.0.0/8'], deny: [] }));
  await source({ ipFilter: { mode: 'none', allowlist: ['10.0.0.0/8'] } });
  await eventually(async () => expect(Object.keys(await recordOf())).not.toContain('ipFilter'));
});

test('the messages of a month follow the organization', async () => {
  await source({});
  await eventually(async () => expect((await recordOf()).monthlyMessages).toBeUndefined());
  for (const [plan, expected] of [
    ['free', 10_000],
    ['starter', 100_000],
    ['pro', 1_000_000],
    ['business', 10_000_000],
  ] as const) {
    await organization({ plan });
    await eventually(async () => expect((await recordOf()).monthlyMessages).toBe(expected));
  }
  await organization({ plan: 'free', limits: { monthlyMessages: 5 } });
  await eventually(async () => expect((await recordOf()).monthlyMessages).toBe(5));
  await organization({ plan: 'enterprise' });
  await eventually(async () => expect((await recordOf()).monthlyMessages).toBeUndefined());
});

test('the secret before the present one is sealed into the record, and is waited for', async () => {
  const validUntil = '2026-12-01T00:00:00Z';
  await secret('keys', { value: 'new' });
  await source({
    provider: 'github',
    signingSecretRef: { name: 'keys', key: 'value' },
    rotation: { previousSecretRef: { name: 'earlier', key: 'value' }, validUntil },
  });
  await eventually(async () => expect(await reasonOf()).toBe('SecretNotFound'));
  await secret('earlier', { value: 'old' });
  const record = await eventually(recordOf);
  const context = recordSealingContext(record.org, 'source', record.id, 'signingSecrets');
  const opened = (sealed: readonly string[] = []): string[] => sealed.map((each) => testKeyring.open(each, context));
  expect([opened(record.signingSecrets), opened(record.previousSigningSecrets?.sealed)]).toEqual([['new'], ['old']]);
  expect(record.previousSigningSecrets?.validUntilMs).toBe(Date.parse(validUntil));
  await secret('earlier', { value: '' });
  await eventually(async () => expect(await reasonOf()).toBe('InvalidSigningSecret'));
});

test('the verify token of a handshake is sealed into the record, and is waited for', async () => {
  await source({ handshake: { type: 'challenge' } });
  await eventually(async () => expect((await recordOf()).handshake).toEqual({ type: 'challenge' }));
  await source({ handshake: { type: 'hub_challenge', verifyTokenSecretRef: { name: 'meta', key: 'value' } } });
  await eventually(async () => expect(await reasonOf()).toBe('SecretNotFound'));
  await secret('meta', { value: 'the token\n' });
  await eventually(async () => {
    const { org, id, handshake } = await recordOf();
    expect(handshake?.type).toBe('hub_challenge');
    expect(testKeyring.open(handshake?.verifyToken ?? '', recordSealingContext(org, 'source', id, 'verifyToken'))).toBe('the token');
  });
  await secret('meta', { value: '' });
  await eventually(async () => expect(await reasonOf()).toBe('InvalidVerifyToken'));
});
