// How fast a worker writes events into a local S3 server, and its memory while the store is down:
//   node hack/bench/warehouse.ts [events] [events during the outage]
// Payload 400 bytes, batches of 1000 records; Redis, the worker and the store share the cores with this process.
import { readFileSync } from 'node:fs';
import { Keyring } from '../../src/core/sealing.ts';
import { recordSealingContext } from '../../src/core/sealing-contexts.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { eventually } from '../../test/support/eventually.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { s3Keys, startS3Server } from '../../test/support/object-stores.ts';
import { freePort } from '../../test/support/ports.ts';
import { startProgram } from '../../test/support/program.ts';
import { organizationRecord, routeRecord, sourceRecord, warehouseRecord } from '../../test/support/records.ts';
import { startRedis } from '../../test/support/redis.ts';
import { buildProgram, builtProgram } from '../lib/built-program.ts';
import { bareRedisPipeline, redisCeilingRow } from './lib/ceilings.ts';
import { exactnessRow, missing } from './lib/exact-delivery.ts';
import { meterProcessor, processorRow } from './lib/processes.ts';
import { withAof } from './lib/redis-options.ts';
import { perSecond, report } from './lib/report.ts';

const [events = 100_000, outageEvents = 50_000] = process.argv.slice(2).map(Number);
const prefix = 'posthorn:';
const atATime = 200;
const key = Buffer.alloc(32, 1);
const payload = Buffer.from(JSON.stringify({ order: 1, text: 'x'.repeat(370) }));
const retryPolicy = { maxRetries: 25, initialDelayMs: 100, maxDelayMs: 1000, backoffMultiplier: 2 };

buildProgram();
const redis = await startRedis(withAof);
const store = await startS3Server();
const acceptor = new RedisMessageAcceptor({ redis: redis.client, prefix, clock: systemClock });
const queue = new RedisDeliveryQueue({ redis: redis.client, prefix });
const worker = () =>
  freePort().then((port) =>
    startProgram(
      ['delivery'],
      {
        POSTHORN_REDIS_URL: redis.url,
        POSTHORN_REDIS_MEMORY_LIMIT: '4gb',
        POSTHORN_SHARDS: '1',
        POSTHORN_ENCRYPTION_KEYS: `k1:${key.toString('base64')}`,
        POSTHORN_EGRESS_ALLOWED_CIDRS: '127.0.0.0/8',
        POSTHORN_WAREHOUSE_S3_ENDPOINT: store.url,
        POSTHORN_WAREHOUSE_BATCH_SECONDS: '5',
        POSTHORN_LOG_LEVEL: 'warn',
        POSTHORN_OPS_PORT: String(port),
        POSTHORN_HOST: '127.0.0.1',
      },
      builtProgram,
    ),
  );

const accepted = new Set<string>();

async function accept(count: number): Promise<void> {
  for (let done = 0; done < count; done += atATime) {
    const some = Array.from({ length: Math.min(atATime, count - done) }, () => newEvent({ payload }));
    await Promise.all(some.map((event) => acceptor.accept(event)));
    for (const { id } of some) accepted.add(id);
  }
}
const unfinished = async (): Promise<number> => (await queue.figures()).unfinished;
const megabytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(0)} MiB`;
const residentBytes = (pid: number): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;

const publisher = new RedisRegistryPublisher(redis.client, prefix);
const epoch = await publisher.mintEpoch();
const context = recordSealingContext('org_a', 'destination', 'dst_a', 'secretAccessKey');
const secretAccessKey = new Keyring([{ id: 'k1', key }]).seal(s3Keys.secretAccessKey, context);
const s3 = { bucket: store.bucket, region: 'us-east-1', credentials: { accessKeyId: s3Keys.accessKeyId, secretAccessKey } };
await publisher.publish(epoch, 'organization', organizationRecord());
await publisher.publish(epoch, 'source', sourceRecord());
await publisher.publish(epoch, 'route', routeRecord({ circuit: { failureThreshold: 100, cooldownSeconds: 1, probeSuccessThreshold: 1 } }));
await publisher.publish(epoch, 'destination', warehouseRecord({ type: 's3', s3 }, {}, { retryPolicy }));

await accept(events);
const program = await worker();
try {
  await eventually('the first batch', 60_000, async () => (await unfinished()) < events);
  const left = await unfinished();
  const meter = meterProcessor(() => [program.pid, redis.pid]);
  const begin = performance.now();
  await eventually('all batches', 300_000, async () => (await unfinished()) === 0);
  const drained = left / ((performance.now() - begin) / 1000);
  const processor = meter(left);
  const residentBefore = residentBytes(program.pid);

  await store.halt();
  let highest = 0;
  const watch = setInterval(() => {
    highest = Math.max(highest, residentBytes(program.pid));
  }, 100);
  await accept(outageEvents);
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  clearInterval(watch);
  await store.resume();
  await eventually('all batches after the outage', 300_000, async () => (await unfinished()) === 0);

  const lines = [...(await store.objects()).values()].flatMap((content) => content.toString().trim().split('\n'));
  const ids = new Set(lines.map((line) => String(JSON.parse(line).id)));
  report('warehouse', `${events} events of ${payload.length} bytes, 1000 to a file`, [
    redisCeilingRow(await bareRedisPipeline()),
    ['records written', perSecond(drained)],
    processorRow(processor),
    ['memory of the worker before an outage', megabytes(residentBefore)],
    [`the highest while the store is down and ${outageEvents} events come`, megabytes(highest)],
    exactnessRow({ lost: missing(accepted, ids), unexpected: missing(ids, accepted), duplicated: lines.length - ids.size }),
  ]);
} finally {
  await program.stop();
  await store.stop();
  await redis.stop();
}
