import type { RegistryReader } from './registry.ts';

/** Returns whether the organization has an enabled source for Posthorn's own events; kept until that changes. Throws UNAVAILABLE. */
export function hasOwnSource(registry: RegistryReader, org: string): Promise<boolean> {
  return registry.derive(`own-sources:${org}`, async () => ({
    value: (await registry.ownSourceIdsOfOrganization(org)).length > 0,
    dependsOn: [ownSourcesKey(org)],
  }));
}

/** The change key of what `hasOwnSource` returns. */
export function ownSourcesKey(org: string): string {
  return `own-sources-of:${org}`;
}
