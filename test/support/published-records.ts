import type { RecordByKind, RecordKind } from '../../src/core/records.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import type { RedisClient } from '../../src/redis/connection.ts';
import { organizationRecord } from './records.ts';

/** Publishes the organization `org_a`, which may reach loopback, and these records, as all that a process of a role reads. */
export async function publishRecords(redis: RedisClient, prefix: string, records: Partial<RecordByKind> = {}): Promise<void> {
  const publisher = new RedisRegistryPublisher(redis, prefix);
  const epoch = await publisher.mintEpoch();
  const all = Object.entries({ organization: organizationRecord(), ...records }) as [RecordKind, RecordByKind[RecordKind]][];
  for (const [kind, record] of all) await publisher.publish(epoch, kind, record);
  await publisher.markComplete();
}
