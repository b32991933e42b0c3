import { PosthornError } from '../../core/errors.ts';
import type { FieldNode } from '../../resources/field-tree.ts';
import { type FieldSet, isWithin, ownedFields, readablePath } from './field-set.ts';
import type { Ownership } from './managed-fields.ts';
import { merged } from './merge.ts';
import { withoutAbandoned } from './remove-fields.ts';

export interface Applier {
  manager: string;
  subresource: string | undefined;
  force: boolean;
}

export interface Applied {
  value: unknown;
  /** The applier's fields after this. */
  fields: FieldSet;
  /** The other owners, without what they have lost. */
  others: Ownership[];
  /** Whether anybody owns more or less than before. */
  ownersChanged: boolean;
}

/**
 * Server-side apply on one object (structured-merge-diff, `Updater.Apply`): lays `config` over `live`, removes what the
 * applier gave before, gives no more and nobody else owns, and moves ownership. Throws FIELD_MANAGED, with the owners
 * of each field in its details, when a field would change that another manager owns and the applier does not force.
 */
export function applied(live: unknown, config: unknown, node: FieldNode, ownerships: readonly Ownership[], applier: Applier): Applied {
  const isApplier = (each: Ownership): boolean =>
    each.operation === 'Apply' && each.manager === applier.manager && each.subresource === applier.subresource;
  const before = ownerships.find(isApplier)?.fields ?? new Set<string>();
  const others = ownerships.filter((each) => !isApplier(each));
  const fields = new Set(ownedFields(config, node).keys());

  const stillOwned = new Set([...fields, ...others.flatMap((each) => [...each.fields])]);
  const value = withoutAbandoned(merged(live, config, node), node, before, stillOwned);

  const liveFields = ownedFields(live, node);
  const valueFields = ownedFields(value, node);
  const changed = new Set([...valueFields].filter(([path, json]) => liveFields.get(path) !== json).map(([path]) => path));
  const removed = [...liveFields.keys()].filter((path) => !valueFields.has(path));
  if (!applier.force) refuseConflicts(changed, others);
  const left = others.map((each) => ({
    ...each,
    fields: new Set([...each.fields].filter((path) => !changed.has(path) && !removed.some((gone) => isWithin(path, gone)))),
  }));
  const othersLost = left.some((each, index) => each.fields.size !== others[index]?.fields.size);
  return { value, fields, others: left, ownersChanged: othersLost || !sameFields(before, fields) };
}

function sameFields(a: FieldSet, b: FieldSet): boolean {
  return a.size === b.size && [...a].every((path) => b.has(path));
}

function refuseConflicts(changed: FieldSet, others: readonly Ownership[]): void {
  const details: Record<string, string[]> = {};
  for (const { manager, fields } of others) {
    for (const path of fields) {
      if (!changed.has(path)) continue;
      const field = readablePath(path);
      details[field] = [...(details[field] ?? []), manager];
    }
  }
  const paths = Object.keys(details);
  if (paths.length === 0) return;
  const managers = [...new Set(Object.values(details).flat())].map((manager) => `"${manager}"`).join(', ');
  throw new PosthornError('FIELD_MANAGED', `${paths.join(', ')} ${paths.length === 1 ? 'is' : 'are'} managed by ${managers}`, { details });
}
