import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { silentLogger } from '../../../test/support/logger.ts';
import { clusterClient, moveSlots, type RedisGroup, startRedisCluster } from '../../../test/support/redis-group.ts';
import { newTimedId } from '../../core/ids.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { systemClock } from '../../runtime/system-clock.ts';
import { RedisMessagePurger } from '../purge/message-purger.ts';
import { type EventClaim, RedisIntake } from './intake.ts';
import { intakeKeys } from './intake-keys.ts';
import { SignatureFailureLog } from './signature-failure-log.ts';
import { SignatureFailures, signatureFailureKeys } from './signature-failures.ts';

const prefix = 'posthorn:';
const rules = /^user posthorn (.+)$/m
  .exec(readFileSync(new URL('../../../config/redis/users.acl', import.meta.url), 'utf8'))?.[1]
  ?.split(' ');
let cluster: RedisGroup;
let redis: RedisClient;

beforeAll(async () => {
  cluster = await startRedisCluster();
  for (const { client } of cluster.nodes) await client.call('ACL', 'SETUSER', 'posthorn', ...(rules ?? []));
  redis = await clusterClient(cluster, 'posthorn:change-me');
});
afterAll(async () => {
  redis.disconnect();
  await cluster.stop();
});

test('on a Redis Cluster, as the user that operations has, dedup keys and months are exact, also while their slot moves', async () => {
  const intake = new RedisIntake({ redis, prefix, clock: systemClock });
  const claim = (mark: string, monthlyMessages: number): EventClaim => ({
    org: 'org_a',
    eventId: newTimedId('evt_', 5, Date.now()),
    receivedAtMs: Date.now(),
    marks: [mark],
    windowMs: 168 * 3_600_000,
    messages: 1,
    monthlyMessages,
  });
  const marks = Array.from({ length: 50 }, () => randomBytes(16).toString('hex'));
  const first = new Map<string, string>();
  const claimAll = async (): Promise<number> => {
    let refused = 0;
    for (const mark of marks) {
      const own = claim(mark, 40);
      const answer = await intake.claim(own);
      if (answer.outcome === 'quotaExceeded') refused++;
      else {
        expect(answer.eventId).toBe(first.get(mark) ?? own.eventId);
        first.set(mark, answer.eventId);
        await intake.settle({ ...own, eventId: answer.eventId }, 'stored');
      }
    }
    return refused;
  };
  const keys = intakeKeys(prefix, 'org_a');
  const [refused, moved] = await Promise.all([claimAll(), moveSlots(cluster, [keys.quota]).catch((error: unknown) => error)]);
  expect(moved === 0 || moved === 1).toBe(true);
  expect([refused, first.size]).toEqual([10, 40]);
  expect(await claimAll()).toBe(10);
  expect((await intake.claim(claim(marks[0] ?? '', 40))).outcome).toBe('duplicate');
  await intake.countDuplicate('org_a', 'src_a', first.get(marks[0] ?? '') ?? '');
  await intake.takeRequest('src_a', 1);
  expect((await intake.takeRequest('src_a', 1)).allowed).toBe(false);
  await new RedisMessagePurger({ redis, prefix }).purgeOrganization('org_a', new AbortController().signal);
  expect(await redis.exists(keys.quota)).toBe(0);
});

test('on a Redis Cluster, as the user that operations has, failed signatures of many organizations are kept, and go with their organization', async () => {
  const log = new SignatureFailureLog({ redis, prefix, clock: systemClock, logger: silentLogger });
  const request = { isRefused: true, address: '192.0.2.1', userAgent: 'Sender/1' };
  const orgs = Array.from({ length: 20 }, (_, i) => `org_failing_${i}`);
  for (const org of orgs) for (const id of ['one', 'two']) log.note({ org, id: `${org}_${id}` }, { reason: 'no_secret' }, request);
  await log.close();
  const failures = new SignatureFailures({ redis, prefix });
  const kept = (): Promise<number[]> => Promise.all(orgs.map(async (org) => (await failures.of(org, `${org}_two`, 0)).requests));
  expect(await kept()).toEqual(orgs.map(() => 1));
  const [gone = '', ...others] = orgs;
  await new RedisMessagePurger({ redis, prefix }).purgeOrganization(gone, new AbortController().signal);
  expect(await kept()).toEqual([0, ...others.map(() => 1)]);
  for (const id of ['one', 'two'])
    expect(await redis.lrange(signatureFailureKeys(prefix, gone).entriesOf(`${gone}_${id}`), 0, -1)).toEqual([]);
});
