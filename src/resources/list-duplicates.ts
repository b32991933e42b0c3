import { canonicalJson } from '../core/canonical-json.ts';
import type { Cause } from './causes.ts';
import { type FieldNode, fieldPath, isRecord } from './field-tree.ts';

/** Complaints about items that occur twice in a list of type set, or whose keys do in one of type map. */
export function duplicateItems(value: unknown, node: FieldNode, path: readonly PropertyKey[]): Cause[] {
  if (node.type === 'object' && isRecord(value)) {
    return [...node.fields].flatMap(([name, field]) => duplicateItems(value[name], field, [...path, name]));
  }
  if (node.type === 'map' && isRecord(value)) {
    return Object.entries(value).flatMap(([name, field]) => duplicateItems(field, node.values, [...path, name]));
  }
  if (node.type !== 'list' || !Array.isArray(value)) return [];
  const nested = value.flatMap((item, index) => duplicateItems(item, node.item, [...path, index]));
  return [...nested, ...repeated(value, node, path)];
}

function repeated(items: readonly unknown[], node: FieldNode & { type: 'list' }, path: readonly PropertyKey[]): Cause[] {
  if (node.listType === 'atomic') return [];
  const seen = new Set<string>();
  return items.flatMap((item, index) => {
    const identity = canonicalJson(node.listType === 'map' ? keyOf(item, node.keys) : item);
    if (seen.has(identity)) return [{ field: fieldPath([...path, index]), message: `is there twice: ${identity}; remove one` }];
    seen.add(identity);
    return [];
  });
}

function keyOf(item: unknown, keys: readonly string[]): Record<string, unknown> {
  return isRecord(item) ? Object.fromEntries(keys.map((key) => [key, item[key]])) : {};
}
