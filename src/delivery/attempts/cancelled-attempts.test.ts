import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { startDeliveryProgram } from '../../../test/support/delivery-program.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../../test/support/records.ts';
import { RedisMessageCanceller } from '../../data/history/message-canceller.ts';
import { RedisRegistryPublisher } from '../../data/registry/registry-publisher.ts';

const suite = deliverySuite();
const { prefix, receiver, worker } = suite;
let canceller: RedisMessageCanceller;
beforeAll(() => {
  canceller = new RedisMessageCanceller({ redis: suite.redis.client, prefix });
});
beforeEach(() => suite.registry.put('route', routeRecord()));

const retryPolicy = { maxRetries: 3, initialDelayMs: 50, maxDelayMs: 50, backoffMultiplier: 1 };
const cancel = async (id: string) => (await canceller.cancel('org_a', [id], 'ann')).get(id);

test.each([
  [200, { status: 'delivered', attempts: 1, deadLetterReason: null, lastErrorType: null }],
  [500, { status: 'dlq', attempts: 1, deadLetterReason: 'cancelled', lastErrorType: 'cancelled', lastResponseStatus: 500 }],
])('a delivery that is cancelled during an attempt that is answered %i ends so, without another attempt', async (status, expected) => {
  const held = Promise.withResolvers<void>();
  const to = await receiver((response) => void held.promise.then(() => response.writeHead(status).end()));
  suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy }));
  worker();
  const id = await suite.send();
  await to.arrived(1);
  expect(await cancel(id)).toBe('cancelling');
  held.resolve();
  await suite.becomes(id, expected);
  const next = await suite.send();
  await to.arrived(2);
  expect(to.requests.map(({ headers }) => headers['webhook-id'])).toEqual([id, next]);
});

test('a delivery that is cancelled during an attempt ends though its worker is killed, and no other worker sends it', async () => {
  const to = await receiver((response, number) => {
    if (number > 1) response.end();
  });
  const publisher = new RedisRegistryPublisher(suite.redis.client, prefix);
  const epoch = await publisher.mintEpoch();
  await publisher.publish(epoch, 'organization', organizationRecord({ egress: { allowedCidrs: ['127.0.0.0/8'], allowedHosts: [] } }));
  await publisher.publish(epoch, 'route', routeRecord({}));
  await publisher.publish(epoch, 'destination', destinationRecord({ url: to.url }, { retryPolicy }));
  await publisher.markComplete();
  const start = async () => {
    const program = await startDeliveryProgram(suite.redis.url, { POSTHORN_REDIS_KEY_PREFIX: prefix, POSTHORN_SHARDS: '1' });
    suite.ends.push(() => program.stop());
    return program;
  };
  const first = await start();
  const id = await suite.send();
  await to.arrived(1);
  expect(await cancel(id)).toBe('cancelling');
  first.signal('SIGKILL');
  await first.ended;
  await start();
  await suite.becomes(id, { status: 'dlq', deadLetterReason: 'cancelled', attempts: 0 });
  const next = await suite.send();
  await suite.becomes(next, { status: 'delivered' });
  expect(to.requests.map(({ headers }) => headers['webhook-id'])).toEqual([id, next]);
}, 120_000);
