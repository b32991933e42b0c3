import { PosthornError } from '../../core/errors.ts';
import { type FieldNode, isRecord } from '../../resources/field-tree.ts';
import type { ManagedFieldsEntry } from '../../resources/metadata.ts';
import { ownersOfField } from '../../store/objects/field-owners.ts';
import { fromFieldsV1, isWithin, itemElement, ownedFields, pathText, readablePath, unknownField } from '../../store/objects/field-set.ts';

export const facadeManager = 'posthorn-api';

type Spec = Record<string, unknown>;

/**
 * Spec that `posthorn-api` applies to turn `current` into `desired`: the fields that it owns, with their
 * new values, and what changes; not what is equal and not ours. null when nothing changes. FIELD_MANAGED when something
 * would change or have to go that another manager owns.
 */
export function ownedSpec(tree: FieldNode, current: Spec, desired: Spec, managedFields: readonly ManagedFieldsEntry[]): Spec | null {
  const root: FieldNode = { type: 'object', nullable: false, atomic: false, fields: new Map([['spec', tree]]) };
  const before = ownedFields({ spec: current }, root);
  const after = ownedFields({ spec: desired }, root);
  const changed = [...after].filter(([path, value]) => before.get(path) !== value).map(([path]) => path);
  const removed = [...before.keys()].filter((path) => !after.has(path) && !isReplaced(path, after));
  const reordered = reorderedItems({ spec: desired }, { spec: current }, root, []);
  if (changed.length + removed.length + reordered.length === 0) return null;

  refuseForeignChanges({ before, after, changed, removed }, managedFields);
  const ours = entriesOf(managedFields).filter(({ manager }) => manager === facadeManager);
  // In a cluster nobody owns an empty list: it is always sent, so that it does not go with the last field beside it; null removes it.
  const emptied = emptyLists({ spec: desired }, root, []);
  const applied = new Set([...changed, ...reordered, ...emptied, ...ours.flatMap(({ paths }) => paths)]);
  const cleared = new Set(emptyLists({ spec: current }, root, []).filter((path) => removed.includes(path)));
  const projected = project({ spec: desired }, root, [], { applied, cleared });
  return isRecord(projected) && isRecord(projected['spec']) ? projected['spec'] : {};
}

/** A field of the spec that another manager than the facade owns: a change of it is FIELD_MANAGED. */
export interface ForeignField {
  /** As `pathText` writes it. */
  path: string;
  managers: string[];
}

/** All fields of the spec that other managers than the facade own, each once. */
export function foreignFields(managedFields: readonly ManagedFieldsEntry[]): ForeignField[] {
  const managersOf = new Map<string, string[]>();
  for (const { manager, paths } of foreignEntries(managedFields))
    for (const path of paths) managersOf.set(path, [...new Set([...(managersOf.get(path) ?? []), manager])]);
  return [...managersOf].map(([path, managers]) => ({ path, managers }));
}

/** The managers other than the facade that own something in the spec. */
export function foreignManagers(managedFields: readonly ManagedFieldsEntry[]): string[] {
  const inSpec = entriesOf(managedFields).filter(
    ({ manager, paths }) => manager !== facadeManager && paths.some((path) => isWithin(path, specPath)),
  );
  return [...new Set(inSpec.map(({ manager }) => manager))];
}

/** The managers other than the facade that own the field at a path in the spec, or something in it. */
export function foreignOwners(managedFields: readonly ManagedFieldsEntry[], ...fields: string[]): string[] {
  const managers = ownersOfField(managedFields, ...fields).map(({ manager }) => manager);
  return [...new Set(managers)].filter((manager) => manager !== facadeManager);
}

/** FIELD_MANAGED, its message naming fields and managers. */
export function fieldManaged(details: Record<string, string[]>): PosthornError {
  const text = Object.entries(details).map(
    ([path, managers]) => `${path} is managed by ${managers.map((manager) => `"${manager}"`).join(', ')}`,
  );
  return new PosthornError('FIELD_MANAGED', `${text.join('; ')}. Change it there.`, { details });
}

const specPath = pathText(['f:spec']);

function entriesOf(managedFields: readonly ManagedFieldsEntry[]): { manager: string; paths: string[] }[] {
  return managedFields
    .filter((entry) => entry.subresource === undefined)
    .map(({ manager, fieldsV1 }) => ({ manager, paths: [...fromFieldsV1(fieldsV1)] }));
}

/** What each manager other than the facade owns in the spec; the spec itself has no owner. */
function foreignEntries(managedFields: readonly ManagedFieldsEntry[]): { manager: string; paths: string[] }[] {
  return entriesOf(managedFields)
    .filter(({ manager }) => manager !== facadeManager)
    .map(({ manager, paths }) => ({ manager, paths: paths.filter((path) => path !== specPath && isWithin(path, specPath)) }));
}

/** An empty object or list counts as a field of its own; with members in it, it has not gone. */
function isReplaced(path: string, after: ReadonlyMap<string, string>): boolean {
  return [...after.keys()].some((other) => isWithin(other, path));
}

interface Difference {
  before: ReadonlyMap<string, string>;
  after: ReadonlyMap<string, string>;
  changed: readonly string[];
  removed: readonly string[];
}

/**
 * The owner of an object or a list does not own what others have put into it: these may take that out again while the object or list itself stays, if only
 * as an empty list.
 */
function refuseForeignChanges({ before, after, changed, removed }: Difference, managedFields: readonly ManagedFieldsEntry[]): void {
  const hasWithin = (fields: ReadonlyMap<string, string>, path: string): boolean => [...fields.keys()].some((each) => isWithin(each, path));
  const details: Record<string, string[]> = {};
  for (const { path: owned, managers } of foreignFields(managedFields)) {
    const refused = [
      ...changed.filter((path) => path === owned && (before.has(path) || !hasWithin(before, owned))),
      ...removed.filter((path) => path === owned || (isWithin(path, owned) && !hasWithin(after, owned))),
    ];
    for (const path of refused) {
      const text = readablePath(path);
      details[text] = [...new Set([...(details[text] ?? []), ...managers])];
    }
  }
  if (Object.keys(details).length > 0) throw fieldManaged(details);
}

interface Change {
  applied: ReadonlySet<string>;
  /** Lists that were empty and go. */
  cleared: ReadonlySet<string>;
}

/** The members of `value` that `applied` contains, the keys of list items with such members, and null for what is `cleared`. */
function project(value: unknown, node: FieldNode, path: readonly string[], change: Change): unknown {
  const { applied, cleared } = change;
  const isApplied = applied.has(pathText(path));
  if ((node.type === 'map' || (node.type === 'object' && !node.atomic)) && isRecord(value)) {
    const entries = Object.entries(value).flatMap(([name, member]): [string, unknown][] => {
      if (member === undefined) return [];
      const child = node.type === 'map' ? node.values : (node.fields.get(name) ?? unknownField);
      const projected = project(member, child, [...path, `f:${name}`], change);
      return projected === undefined ? [] : [[name, projected]];
    });
    const names = node.type === 'object' && cleared.size > 0 ? [...node.fields.keys()] : [];
    for (const name of names) if (cleared.has(pathText([...path, `f:${name}`]))) entries.push([name, null]);
    return entries.length > 0 || isApplied ? Object.fromEntries(entries) : undefined;
  }
  if (node.type === 'list' && node.listType !== 'atomic' && Array.isArray(value)) {
    const items = value.flatMap((item): unknown[] => {
      const itemPath = [...path, itemElement(item, node)];
      if (node.listType === 'set') return applied.has(pathText(itemPath)) ? [item] : [];
      const projected = project(item, node.item, itemPath, change);
      return projected === undefined
        ? []
        : [{ ...keysOf(item, node.listType === 'map' ? node.keys : []), ...(isRecord(projected) ? projected : {}) }];
    });
    return items.length > 0 || isApplied ? items : undefined;
  }
  return isApplied ? value : undefined;
}

/** The lists of items with owners of their own that have no item. */
function emptyLists(value: unknown, node: FieldNode, path: readonly string[]): string[] {
  if (node.type === 'object' && !node.atomic && isRecord(value))
    return [...node.fields].flatMap(([name, child]) => emptyLists(value[name], child, [...path, `f:${name}`]));
  const isEmptyList = node.type === 'list' && node.listType !== 'atomic' && Array.isArray(value) && value.length === 0;
  return isEmptyList ? [pathText(path)] : [];
}

/** Items of lists that have the same items in another order: all of them are applied, the store takes the order over. */
function reorderedItems(desired: unknown, current: unknown, node: FieldNode, path: readonly string[]): string[] {
  if (node.type === 'object' && isRecord(desired) && isRecord(current)) {
    return [...node.fields].flatMap(([name, child]) => reorderedItems(desired[name], current[name], child, [...path, `f:${name}`]));
  }
  if (node.type !== 'list' || node.listType === 'atomic' || !Array.isArray(desired) || !Array.isArray(current)) return [];
  const [wanted, present] = [desired, current].map((items) => items.map((item) => itemElement(item, node)));
  if (wanted === undefined || present === undefined) return [];
  const kept = present.filter((element) => wanted.includes(element));
  const isSameOrder = wanted.filter((element) => present.includes(element)).every((element, index) => element === kept[index]);
  return isSameOrder ? [] : wanted.map((element) => pathText([...path, element]));
}

function keysOf(item: unknown, keys: readonly string[]): Record<string, unknown> {
  return isRecord(item) ? Object.fromEntries(keys.map((key) => [key, item[key]])) : {};
}
