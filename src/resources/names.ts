import { isRecord } from './field-tree.ts';
import type { Kind } from './kinds.ts';

/** Segments of API paths at the position of an id or a slug: no resource may have them as its name. */
const reservedSlugs: readonly string[] = ['bulk', 'export', 'import', 'test', 'by-external-id', 'upsert'];

export function isReservedSlug(slug: string): boolean {
  return reservedSlugs.includes(slug);
}

interface NameRule {
  cel: string;
  message: string;
  appliesTo(kind: Kind): boolean;
  check(name: string, spec: unknown): boolean;
}

/** The object name of an event type: names of objects have no `_`, names of event types no `-`, so that both are unique. */
export function eventTypeSlug(name: string): string {
  return name.replaceAll('_', '-');
}

/** Requirements on the name of each resource beyond those of Kubernetes: it is the slug of API and ingest paths. */
export const nameRules: readonly NameRule[] = [
  {
    cel: "!self.metadata.name.contains('.') && self.metadata.name.size() <= 63",
    message: 'must have no dot and be at most 63 characters long: the name is the slug in API paths',
    appliesTo: (kind) => kind !== 'WebhookEventType',
    check: (name) => !name.includes('.') && name.length <= 63,
  },
  {
    cel: 'self.metadata.name.size() <= 40',
    message: 'must be at most 40 characters long: the objects of a pool are called posthorn-delivery-<name>',
    appliesTo: (kind) => kind === 'DeliveryPool',
    check: (name) => name.length <= 40,
  },
  {
    cel: "self.metadata.name == self.spec.name.replace('_', '-')",
    message: 'must be spec.name with - for each _',
    appliesTo: (kind) => kind === 'WebhookEventType',
    check: (name, spec) => isRecord(spec) && typeof spec['name'] === 'string' && name === eventTypeSlug(spec['name']),
  },
  {
    cel: `!(self.metadata.name in [${reservedSlugs.map((slug) => `'${slug}'`).join(', ')}])`,
    message: `must not be one of ${reservedSlugs.join(', ')}: API paths use these words`,
    // No API path has an organization's slug beside a word of its own.
    appliesTo: (kind) => kind !== 'Organization',
    check: (name) => !isReservedSlug(name),
  },
];
