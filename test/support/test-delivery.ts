import { Registry } from 'prom-client';
import { doorbellBlockSeconds } from '../../src/data/queue/doorbell.ts';
import { RedisMessageAcceptor } from '../../src/data/queue/message-acceptor.ts';
import { type Delivery, type DeliveryOptions, startDelivery } from '../../src/delivery/start-delivery.ts';
import { eventRouting } from '../../src/ingest/routed-again.ts';
import { blockingConnection, type RedisClient } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { Sandbox } from '../../src/sandbox/sandbox.ts';
import { testKeyring } from './controllers.ts';
import { lenientBy } from './lenient-clock.ts';
import { silentLogger } from './logger.ts';
import { MemoryDirectory } from './memory-directory.ts';

type Own = Pick<DeliveryOptions, 'prefix' | 'registry'> & Partial<DeliveryOptions>;

/** A delivery worker of a test on this Redis, with overrides. It stops once: connections that are closed twice keep the process for 2 s. */
export function startTestDelivery(redis: { client: RedisClient; url: string }, own: Own): Delivery {
  const sandbox = new Sandbox({ clock: lenientBy(3), processes: 1 });
  const delivery = startDelivery({
    redis: redis.client,
    openBlocking: () => blockingConnection(redis.url, { blockMs: doorbellBlockSeconds * 1000 }),
    keyring: testKeyring,
    clock: systemClock,
    logger: silentLogger,
    metrics: new Registry(),
    version: '0.0.0-test',
    egress: { allowedCidrs: [] },
    webhooks: new MemoryDirectory().sources(),
    eventReplays: {
      routing: eventRouting({ registry: own.registry, sandbox, logger: silentLogger }),
      acceptor: new RedisMessageAcceptor({ redis: redis.client, prefix: own.prefix, clock: systemClock }),
    },
    ...own,
  });
  let stopped: Promise<void> | null = null;
  return {
    ...delivery,
    stop: (graceMs) => {
      stopped ??= delivery.stop(graceMs).finally(() => sandbox.close());
      return stopped;
    },
  };
}
