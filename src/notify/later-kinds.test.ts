import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startAlertingWorker } from '../../test/support/alerting-worker.ts';
import { eventually } from '../../test/support/eventually.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import { RecordRegistry } from '../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord, sourceRecord } from '../../test/support/records.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { OwnEventLog } from '../data/queue/own-event-log.ts';
import { hashFields } from '../data/shard/hash-fields.ts';

const prefix = 'test:';
let redis: RedisServer;
let ops: Receiver;
let stop: () => Promise<void>;

beforeAll(async () => {
  redis = await startRedis();
  ops = await startReceiver();
  const registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  registry.put('source', sourceRecord({ id: 'src_own', slug: 'posthorn', provider: 'posthorn' }));
  registry.put('destination', destinationRecord({ url: ops.url }, { id: 'dst_ops' }));
  registry.put('route', routeRecord({ id: 'rte_ops', sourceId: 'src_own', destinations: [{ id: 'dst_ops', shard: 0 }] }));
  stop = startAlertingWorker(redis, { prefix, registry });
});
afterAll(async () => {
  await stop?.();
  await ops?.close();
  await redis?.stop();
});

test('kinds of a later release are passed over and forgotten; what was recorded between and after them is reported', async () => {
  const { ends } = hashFields;
  const entry = (kind: string) =>
    [
      ends.organization,
      'org_a',
      ends.ownRoute,
      '-',
      ends.destination,
      'x',
      ends.atMs,
      Date.now(),
      ends.kind,
      kind,
      ends.count,
      1,
      ends.message,
      '-',
      ends.details,
      kind === 'm' ? '{"percent":80}' : '[',
      ends.omitted,
      0,
    ].map(String);
  const kinds = ['zz', '', 'm', 'constructor'];
  for (const [i, kind] of kinds.entries()) await redis.client.xadd(`${prefix}{s0}:ends`, `0-${i + 1}`, ...entry(kind));
  const data = { rotatedAt: new Date().toISOString() };
  await new OwnEventLog({ redis: redis.client, prefix }).noteOfOrganization({ org: 'org_a', kind: 'secretRotated', about: 'a', data }, 0);
  await ops.arrived(2);
  expect(ops.requests.map(({ body }) => JSON.parse(body.toString()).type).sort()).toEqual(['quota.reached', 'secret.rotated']);
  await eventually(async () => expect(await redis.client.exists(`${prefix}{s0}:ends`)).toBe(0));
});
