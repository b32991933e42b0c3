import { expect, test } from '@jest/globals';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { destinationRecord, routeRecord } from '../../../test/support/records.ts';

const suite = deliverySuite();
const retryPolicy = { maxRetries: 2, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1, delaysMs: [1000, 100] };

test('a message is sent again after the delays of its destination, as often as there are some', async () => {
  const to = await suite.receiver((response) => response.writeHead(503).end('no'));
  suite.registry.put('destination', destinationRecord({ url: to.url }, { retryPolicy }));
  suite.registry.put('route', routeRecord());
  suite.worker();
  await suite.becomes(await suite.send(), { status: 'dlq', deadLetterReason: 'max_retries_exceeded', attempts: 3 });
  const [first = 0, second = 0, third = 0] = to.requests.map(({ atMs }) => atMs);
  // Each varies by a fifth.
  expect(second - first).toBeGreaterThanOrEqual(790);
  expect(third - second).toBeGreaterThanOrEqual(70);
});
