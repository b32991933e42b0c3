import type { Kind } from './kinds.ts';

/** Segments of API paths that stand where an id or a slug does (API decisions): no resource may have them as its name. */
const reservedSlugs: readonly string[] = ['bulk', 'export', 'import', 'test', 'by-external-id', 'upsert'];

/** What the name of each resource must be beyond what Kubernetes asks: it is the slug of API and ingest paths. */
export const nameRules = [
  {
    cel: "!self.metadata.name.contains('.') && self.metadata.name.size() <= 63",
    message: 'must have no dot and be at most 63 characters long: the name is the slug in API paths',
    appliesTo: () => true,
    check: (name: string) => !name.includes('.') && name.length <= 63,
  },
  {
    cel: `!(self.metadata.name in [${reservedSlugs.map((slug) => `'${slug}'`).join(', ')}])`,
    message: `must not be one of ${reservedSlugs.join(', ')}: API paths use these words`,
    // No API path has an organization's slug beside a word of its own.
    appliesTo: (kind: Kind) => kind !== 'Organization',
    check: (name: string) => !reservedSlugs.includes(name),
  },
] as const;
