import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { IngestUnderTest } from '../../test/support/ingest.ts';
import { lenientClock } from '../../test/support/lenient-clock.ts';
import { lenientSandbox } from '../../test/support/lenient-sandbox.ts';
import { silentLogger } from '../../test/support/logger.ts';
import { newEvent } from '../../test/support/new-event.ts';
import { RedisMessageReader } from '../data/history/message-reader.ts';
import { RedisMessageAcceptor } from '../data/queue/message-acceptor.ts';
import { readEventWithPayload } from '../data/replays/event-originals.ts';
import { eventRouting } from './routed-again.ts';

const prefix = 'events:';
let ingest: IngestUnderTest;
const sandbox = lenientSandbox();
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(async () => {
  sandbox.close();
  await ingest.stop();
});

test('the routes evaluate an event although a signing secret of its source does not open', async () => {
  await ingest.publishSignedSource({ signingSecrets: ['no envelope'] });
  await ingest.publishRoute({ sourceId: 'src_a', destinations: [{ id: 'dst_a', shard: 0 }] });
  const redis = ingest.redis.client;
  const stored = newEvent({ sourceId: 'src_a', targets: [] });
  await new RedisMessageAcceptor({ redis, prefix, clock: lenientClock }).accept(stored);
  const reader = new RedisMessageReader({ redis, prefix, shards: () => 1 });
  const routing = eventRouting({ registry: ingest.registry, sandbox, logger: silentLogger });
  const targets = await routing.targets({ org: 'org_a', sourceId: 'src_a' }, undefined, () =>
    readEventWithPayload(reader, 'org_a', stored.id),
  );
  expect(targets).toMatchObject([{ routeId: 'rte_a', destinationId: 'dst_a' }]);
});
