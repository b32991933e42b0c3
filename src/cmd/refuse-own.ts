import { lookup } from 'node:dns/promises';
import type { RefusedAddresses } from '../core/egress-policy.ts';
import { redisNodes } from '../redis/address.ts';
import { knownServers, type RedisClient } from '../redis/connection.ts';
import type { Config } from './config.ts';

/** Names of the Service of the API server. */
const apiServerNames = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local'];

/** No destination may reach Redis and the API server, whatever networks are allowed. Returns whether all were found; never rejects. */
export async function refuseOwn(refused: RefusedAddresses, client: RedisClient, { redis, kubernetesService }: Config): Promise<boolean> {
  const services = kubernetesService === undefined ? [] : [kubernetesService];
  for (const { port } of services) for (const name of apiServerNames) refused.add(name, port);
  if (redis !== undefined) services.push(...redisNodes(redis.url).nodes, ...knownServers(client));
  const found = await Promise.allSettled(
    services.map(async ({ host, port }) => {
      refused.add(host, port);
      for (const { address } of await lookup(host, { all: true })) refused.add(address, port);
    }),
  );
  return found.every(({ status }) => status === 'fulfilled');
}
