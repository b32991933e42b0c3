import type { OrganizationRecord } from '../../core/records.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';

/** Organizations that one request reads; each may cost an access review. */
const maxSeen = 100;

/**
 * Reads organizations in the order of their slugs, from the first slug after `after` (null: from the start). It stops when `see` has returned a value for
 * `limit` of them, or after 100. `next`: the slug to continue after; null: there are no more. Rejects as `see` does, and with UNAVAILABLE without Redis.
 */
export async function walkOrganizations<T>(
  registry: RegistryReader,
  { after, limit, see }: { after: string | null; limit: number; see: (record: OrganizationRecord) => Promise<T | null> },
): Promise<{ found: { record: OrganizationRecord; seen: T }[]; next: string | null }> {
  const found: { record: OrganizationRecord; seen: T }[] = [];
  const slugs = (await registry.organizationSlugs()).filter((slug) => after === null || slug > after);
  for (const [i, slug] of slugs.entries()) {
    if (found.length >= limit || i >= maxSeen) return { found, next: slugs[i - 1] ?? null };
    const id = await registry.organizationIdBySlug(slug);
    const record = id === null ? null : await registry.get('organization', id);
    const seen = record === null || record.retained !== undefined ? null : await see(record);
    if (record !== null && seen !== null) found.push({ record, seen });
  }
  return { found, next: null };
}
