import { beforeAll, beforeEach, expect, test } from '@jest/globals';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { publishRecords } from '../../../test/support/published-records.ts';
import { destinationRecord, routeRecord } from '../../../test/support/records.ts';
import { RedisMessageCanceller } from '../../data/history/message-canceller.ts';

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
  await publishRecords(suite.redis.client, prefix, {
    route: routeRecord(),
    destination: destinationRecord({ url: to.url }, { retryPolicy }),
  });
  const first = await suite.program();
  const id = await suite.send();
  await to.arrived(1);
  expect(await cancel(id)).toBe('cancelling');
  first.signal('SIGKILL');
  await first.ended;
  await suite.program();
  await suite.becomes(id, { status: 'dlq', deadLetterReason: 'cancelled', attempts: 0 });
  const next = await suite.send();
  await suite.becomes(next, { status: 'delivered' });
  expect(to.requests.map(({ headers }) => headers['webhook-id'])).toEqual([id, next]);
}, 120_000);
