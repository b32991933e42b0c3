import { randomUUID } from 'node:crypto';
import { AlertStates } from '../../src/data/alerts/alert-states.ts';
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import { Circuits } from '../../src/data/queue/circuits.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import type { DeliveryOptions } from '../../src/delivery/start-delivery.ts';
import { acceptOwnEvent } from '../../src/ingest/accept-own-event.ts';
import { Notifier } from '../../src/notify/notifier.ts';
import type { RedisClient } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { lenientClock } from './lenient-clock.ts';
import { lenientSandbox } from './lenient-sandbox.ts';
import { silentLogger } from './logger.ts';
import { startTestDelivery } from './test-delivery.ts';

type Own = Pick<DeliveryOptions, 'prefix' | 'registry'> & Partial<DeliveryOptions>;

/** A delivery worker with its notifier, as a process of the role delivery has them. Loopback may be reached. Returns the function that ends both. */
export function startAlertingWorker(redis: { client: RedisClient; url: string }, own: Own, ownSandbox?: Sandbox): () => Promise<void> {
  const { prefix, registry, shards = 1, logger = silentLogger } = own;
  const shared = { redis: redis.client, prefix, shards: () => shards };
  const acceptor = new RedisMessageAcceptor({ ...shared, clock: lenientClock });
  const sandbox = ownSandbox ?? lenientSandbox();
  const notifier = new Notifier({
    states: new AlertStates({ redis: redis.client, prefix }),
    acceptor,
    acceptOwn: (event, signal) => acceptOwnEvent({ registry, acceptor, sandbox, logger }, event, signal),
    registry,
    messages: new RedisMessageReader(shared),
    circuits: new Circuits(shared),
    shards,
    reader: randomUUID(),
    clock: systemClock,
    logger,
  });
  const delivery = startTestDelivery(redis, {
    egress: { allowedCidrs: ['127.0.0.0/8'] },
    ...own,
    onAlerts: (shard) => notifier.wake(shard),
  });
  return async () => {
    await delivery.stop(1000);
    await notifier.stop();
    sandbox.close();
  };
}
