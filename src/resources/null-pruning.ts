import { type FieldNode, isRecord } from './field-tree.ts';

/**
 * A copy of `value` without the nulls that the API server drops before it sets defaults: those of object fields that
 * are not nullable. Nulls in lists stay, and are then of the wrong type.
 */
export function pruneNulls(value: unknown, node: FieldNode): unknown {
  switch (node.type) {
    case 'leaf':
      return value;
    case 'object':
      return isRecord(value) ? pruneFields(value, (name) => node.fields.get(name)) : value;
    case 'map':
      return isRecord(value) ? pruneMap(value, node.values) : value;
    case 'list':
      return Array.isArray(value) ? value.map((item) => pruneNulls(item, node.item)) : value;
  }
}

/** Maps are of Kubernetes' own types, labels and the like: there null is the empty text. */
function pruneMap(value: Record<string, unknown>, node: FieldNode): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, item === null && !node.nullable ? '' : pruneNulls(item, node)]),
  );
}

function pruneFields(value: Record<string, unknown>, nodeOf: (name: string) => FieldNode | undefined): Record<string, unknown> {
  const kept = Object.entries(value).flatMap(([name, field]): [string, unknown][] => {
    const node = nodeOf(name);
    if (node === undefined) return [[name, field]];
    return field === null && !node.nullable ? [] : [[name, pruneNulls(field, node)]];
  });
  return Object.fromEntries(kept);
}
