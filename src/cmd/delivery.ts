import { lookup } from 'node:dns/promises';
import type { Logger } from '../core/logger.ts';
import { Keyring } from '../core/sealing.ts';
import { changeStreamBlockMs } from '../data/change-stream.ts';
import { doorbellBlockSeconds } from '../data/doorbell.ts';
import { RedisRegistryReader } from '../data/registry-reader.ts';
import { startDelivery } from '../delivery/start-delivery.ts';
import { redisNodes } from '../redis/address.ts';
import { knownServers, type RedisClient } from '../redis/connection.ts';
import { agreedShards } from './agreed-shards.ts';
import type { Config } from './config.ts';
import { closeServer } from './listen.ts';
import { metricsOf, opsHandler } from './ops-server.ts';
import { readPem } from './pem-file.ts';
import { redisOf } from './redis-address.ts';
import { RedisLink } from './redis-link.ts';
import { checkRedisSettings } from './redis-settings.ts';
import { type RoleContext, type RoleDefinition, startOpsServer } from './role-process.ts';
import { version } from './version.ts';

const healthIntervalMs = 1000;

/** A worker. It knows Redis and the receivers, and has no way to Kubernetes. */
export const deliveryRole: RoleDefinition = { role: 'delivery', checks: ['redis', 'worker'], run: runDelivery };

async function runDelivery(context: RoleContext): Promise<void> {
  const { config, logger, clock, registry, readiness, stopping } = context;
  const extraCa =
    config.egressCaFile === undefined ? {} : { extraCa: readPem(config.egressCaFile, 'CERTIFICATE', 'POSTHORN_EGRESS_CA_FILE') };
  const prefix = config.redisKeyPrefix;
  const link = new RedisLink(redisOf(config), { name: 'delivery', logger, readiness });
  const opsServer = await startOpsServer(context, opsHandler({ readiness, logger, metrics: metricsOf(registry) }));
  const records = new RedisRegistryReader({
    redis: link.main,
    blocking: link.blocking('changes', changeStreamBlockMs),
    prefix,
    clock,
    logger,
  });
  try {
    const worker = link.command('worker');
    if (!(await link.waitUntilReachable(clock, stopping))) return;
    await checkRedisSettings(link.main, logger, config.redisMemoryLimitBytes);
    records.start();
    const delivery = startDelivery({
      redis: worker,
      openBlocking: () => link.blocking('doorbell', doorbellBlockSeconds * 1000),
      shards: await agreedShards(link, context),
      prefix,
      registry: records,
      keyring: new Keyring(config.encryptionKeys),
      clock,
      logger,
      metrics: registry,
      version,
      concurrency: config.deliveryConcurrency,
      memoryLimitBytes: config.redisMemoryLimitBytes,
      egress: { allowedCidrs: config.egressAllowedCidrs, refusedAddresses: await ownAddresses(link.main, config, logger) },
      ...extraCa,
      ...(config.egressProxyUrl !== undefined && { proxyUrl: config.egressProxyUrl }),
    });
    while (!stopping.aborted) {
      readiness.set('worker', delivery.isHealthy() ? { ok: true } : { ok: false, detail: 'no heartbeat for 15 s' });
      await clock.sleep(healthIntervalMs, stopping);
    }
    await delivery.stop(config.drainMs);
  } finally {
    await records.stop();
    await closeServer(opsServer, 1000);
    link.close();
  }
}

/** Redis and the API server, which no destination may reach whatever networks are allowed. */
async function ownAddresses(
  client: RedisClient,
  { redis, kubernetesService }: Config,
  logger: Logger,
): Promise<{ address: string; port: number }[]> {
  const services = kubernetesService === undefined ? [] : [kubernetesService];
  if (redis !== undefined) services.push(...redisNodes(redis.url).nodes, ...knownServers(client));
  const found = await Promise.all(
    services.map(async ({ host, port }) => {
      try {
        return (await lookup(host, { all: true })).map(({ address }) => ({ address, port }));
      } catch (error) {
        logger.warn({ err: error, host }, 'the address of a service cannot be found, so deliveries to it are not refused by address');
        return [];
      }
    }),
  );
  return found.flat();
}
