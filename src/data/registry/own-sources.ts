import { ownProvider } from '../../core/providers/providers.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import type { RegistryReader } from './registry.ts';
import { registryKeys } from './registry-keys.ts';

/** Returns whether the organization has an enabled source for Posthorn's own events; kept until that changes. Throws UNAVAILABLE. */
export function hasOwnSource(registry: RegistryReader, org: string): Promise<boolean> {
  return registry.derive(`own-sources:${org}`, async () => ({
    value: (await registry.ownSourceIdsOfOrganization(org)).length > 0,
    dependsOn: [ownSourcesKey(org)],
  }));
}

/** `hasOwnSource` for processes without a `RegistryReader`, such as controllers: one command per call. */
export async function readHasOwnSource({ redis, prefix }: { redis: RedisClient; prefix: string }, org: string): Promise<boolean> {
  return (await redis.exists(registryKeys(prefix).index(ownSourcesKey(org))).catch(throwUnavailable)) === 1;
}

/** Whether a source's events cause own events. Own events cause none: that would never end. Throws UNAVAILABLE. */
export async function makesOwnEvents(registry: RegistryReader, sourceId: string): Promise<boolean> {
  const source = await registry.get('source', sourceId);
  return source !== null && source.provider !== ownProvider;
}

/** The change key of what `hasOwnSource` returns. */
export function ownSourcesKey(org: string): string {
  return `own-sources-of:${org}`;
}
