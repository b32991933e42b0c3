import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../../../test/support/eventually.ts';
import { silentLogger } from '../../../test/support/logger.ts';
import { type RedisServer, startRedis } from '../../../test/support/redis.ts';
import type { SignatureFailure } from '../../core/providers/signature-failure.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { SignatureFailureLog } from './signature-failure-log.ts';
import { maxFailingSources, maxSignatureFailures, SignatureFailures, signatureFailuresKeptMs } from './signature-failures.ts';

const prefix = 'test:';
const missing: SignatureFailure = { reason: 'header_missing', header: 'x-hub-signature-256' };
let redis: RedisServer;
let failures: SignatureFailures;
let nowMs = Date.UTC(2026, 10, 21);
const logs: SignatureFailureLog[] = [];
beforeAll(async () => {
  redis = await startRedis();
  failures = new SignatureFailures({ redis: redis.client, prefix });
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client.flushall();
});
afterEach(async () => {
  for (const log of logs.splice(0)) await log.close();
});

/** The log of a process, which writes when it is closed or after a second of real time; its clock is at `nowMs`. */
function startLog(client = redis.client): SignatureFailureLog {
  const log = new SignatureFailureLog({ redis: client, prefix, clock: { ...systemClock, now: () => nowMs }, logger: silentLogger });
  logs.push(log);
  return log;
}

/** Records requests, each with its own address unless it is named, and writes them. */
async function fail(org: string, sources: readonly string[], { failure = missing, address = '192.0.2.1' } = {}): Promise<void> {
  const log = startLog();
  for (const id of sources) log.note({ org, id }, failure, { isRefused: true, address, userAgent: 'Sender/1' });
  await log.close();
}

test('failures of the same reason from the same address are one entry, over all processes, the newest first', async () => {
  const beganMs = nowMs;
  await fail('org_a', ['src_a'], { address: '192.0.2.1' });
  nowMs += 5000;
  await fail('org_a', ['src_a'], { address: '192.0.2.2' });
  nowMs += 5000;
  const late: SignatureFailure = { reason: 'timestamp_outside_tolerance', header: 'stripe-signature', secondsBehind: 400 };
  await fail('org_a', ['src_a', 'src_a'], { address: '192.0.2.1', failure: late });
  await fail('org_a', ['src_a'], { address: '192.0.2.1', failure: { ...late, secondsBehind: -500 } });
  await fail('org_a', ['src_a'], { address: '192.0.2.1' });
  const common = { isRefused: true, userAgent: 'Sender/1' };
  expect(await failures.of('org_a', 'src_a', 0)).toEqual({
    requests: 6,
    sinceMs: beganMs,
    entries: [
      { ...missing, ...common, address: '192.0.2.1', requests: 2, firstAtMs: beganMs, lastAtMs: nowMs },
      { ...late, secondsBehind: -500, ...common, address: '192.0.2.1', requests: 3, firstAtMs: nowMs, lastAtMs: nowMs },
      { ...missing, ...common, address: '192.0.2.2', requests: 1, firstAtMs: beganMs + 5000, lastAtMs: beganMs + 5000 },
    ],
  });
});

test('a source keeps its newest entries, and all its requests are counted', async () => {
  for (let i = 1; i <= maxSignatureFailures + 5; i++) await fail('org_a', ['src_a'], { address: `192.0.2.${i}` });
  const { requests, entries } = await failures.of('org_a', 'src_a', 0);
  expect([requests, entries.length]).toEqual([maxSignatureFailures + 5, maxSignatureFailures]);
  expect([entries[0]?.address, entries.at(-1)?.address]).toEqual([`192.0.2.${maxSignatureFailures + 5}`, '192.0.2.6']);
});

test('requests that come from many addresses within a second are counted, and some of them are entries', async () => {
  const log = startLog();
  for (let i = 0; i < 200; i++)
    log.note({ org: 'org_a', id: 'src_a' }, missing, { isRefused: true, address: `192.0.2.${i}`, userAgent: undefined });
  await log.close();
  const { requests, entries } = await failures.of('org_a', 'src_a', 0);
  expect([requests, entries.length, entries[0]?.userAgent]).toEqual([200, 5, null]);
});

test('an organization keeps failures of a bounded number of sources, those that failed last, and takes nothing from another', async () => {
  await fail('org_b', ['src_of_b']);
  const sources = Array.from({ length: maxFailingSources + 10 }, (_, i) => `src_${i}`);
  for (const id of sources) {
    nowMs += 1;
    await fail('org_a', [id]);
  }
  const kept = await Promise.all(sources.map(async (id) => (await failures.of('org_a', id, 0)).entries.length));
  expect(kept).toEqual(sources.map((_, i) => (i < 10 ? 0 : 1)));
  expect(await redis.client.keys(`${prefix}{sigfail:org_a}:of:*`)).toHaveLength(maxFailingSources);
  expect((await failures.of('org_b', 'src_of_b', 0)).entries).toHaveLength(1);
  expect((await failures.of('org_a', 'src_of_b', 0)).entries).toEqual([]);
});

test('an organization whose sources are all flooded at once keeps no other organization from being written', async () => {
  const log = startLog();
  const request = { isRefused: true, address: '192.0.2.1', userAgent: undefined };
  for (let i = 0; i < 2000; i++) log.note({ org: 'org_a', id: `src_${i}` }, missing, request);
  log.note({ org: 'org_b', id: 'src_of_b' }, missing, request);
  await log.close();
  expect(await redis.client.keys(`${prefix}{sigfail:org_a}:of:*`)).toHaveLength(50);
  expect((await failures.of('org_b', 'src_of_b', 0)).requests).toBe(1);
});

test('entries go a day after their last failure, also while the source fails in another way', async () => {
  await fail('org_a', ['src_a', 'src_b'], { address: '192.0.2.1' });
  nowMs += signatureFailuresKeptMs / 2;
  await fail('org_a', ['src_a'], { address: '192.0.2.2' });
  nowMs += signatureFailuresKeptMs / 2 + 1;
  expect((await failures.of('org_a', 'src_a', nowMs - signatureFailuresKeptMs)).entries.map(({ address }) => address)).toEqual([
    '192.0.2.2',
  ]);
  await fail('org_a', ['src_a'], { address: '192.0.2.3' });
  const addresses = (await failures.of('org_a', 'src_a', 0)).entries.map(({ address }) => address);
  expect(addresses).toEqual(['192.0.2.3', '192.0.2.2']);
  expect(await failures.of('org_a', 'src_b', 0)).toEqual({ requests: 0, sinceMs: null, entries: [] });
  expect(await redis.client.keys(`${prefix}{sigfail:org_a}:of:*`)).toHaveLength(1);
});

test('failures that are recorded while others are being written are written a second later', async () => {
  const log = startLog();
  const request = { isRefused: true, address: '192.0.2.1', userAgent: undefined };
  const totals = (): Promise<number[]> => Promise.all(['src_a', 'src_b'].map(async (id) => (await failures.of('org_a', id, 0)).requests));
  log.note({ org: 'org_a', id: 'src_a' }, missing, request);
  await redis.client.call('CLIENT', 'PAUSE', '2500', 'WRITE');
  await systemClock.sleep(1500);
  log.note({ org: 'org_a', id: 'src_b' }, missing, request);
  await eventually(async () => expect(await totals()).toEqual([1, 1]));
});

test('failures are dropped without Redis: noting one does not wait, and closing ends', async () => {
  const lost = redis.client.duplicate({ lazyConnect: true, enableOfflineQueue: false, maxRetriesPerRequest: 0 });
  lost.on('error', () => {});
  const log = startLog(lost);
  log.note({ org: 'org_a', id: 'src_a' }, missing, { isRefused: true, address: '192.0.2.1', userAgent: undefined });
  await log.close().finally(() => lost.disconnect());
  expect((await failures.of('org_a', 'src_a', 0)).entries).toEqual([]);
});
