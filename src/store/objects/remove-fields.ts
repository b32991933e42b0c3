import { type FieldNode, isRecord } from '../../resources/field-tree.ts';
import { type FieldSet, itemElement, pathElements, pathText, unknownField } from './field-set.ts';

/**
 * The value without the fields of `given` below which nobody owns anything any more. A granular object goes with its last
 * owned field, also when defaults are left in it (structured-merge-diff, `prune`).
 */
export function withoutAbandoned(value: unknown, node: FieldNode, given: FieldSet, stillOwned: FieldSet): unknown {
  const candidates = withNamedParents(given);
  const owned = withAncestors(stillOwned);
  const abandoned = new Set([...candidates].filter((path) => !owned.has(path)));
  return abandoned.size === 0 ? value : without(value, node, [], abandoned);
}

/** With every object that holds a member: it was given too. */
function withNamedParents(fields: FieldSet): Set<string> {
  const result = new Set<string>();
  for (const path of fields) {
    result.add(path);
    const elements = pathElements(path);
    for (let length = elements.length - 1; length > 0; length--) {
      if (elements[length - 1]?.startsWith('f:') === true) result.add(pathText(elements.slice(0, length)));
    }
  }
  return result;
}

function withAncestors(fields: FieldSet): Set<string> {
  const result = new Set<string>();
  for (const path of fields) {
    const elements = pathElements(path);
    for (let length = elements.length; length > 0; length--) result.add(pathText(elements.slice(0, length)));
  }
  return result;
}

function without(value: unknown, node: FieldNode, path: string[], abandoned: FieldSet): unknown {
  if (node.type === 'list' && node.listType !== 'atomic' && Array.isArray(value)) {
    return value.flatMap((item): unknown[] => {
      const itemPath = [...path, itemElement(item, node)];
      return abandoned.has(pathText(itemPath)) ? [] : [node.listType === 'map' ? without(item, node.item, itemPath, abandoned) : item];
    });
  }
  if ((node.type === 'map' || (node.type === 'object' && !node.atomic)) && isRecord(value)) {
    const entries = Object.entries(value).flatMap(([name, field]): [string, unknown][] => {
      const fieldPath = [...path, `f:${name}`];
      const child = node.type === 'map' ? node.values : (node.fields.get(name) ?? unknownField);
      return abandoned.has(pathText(fieldPath)) ? [] : [[name, without(field, child, fieldPath, abandoned)]];
    });
    return Object.fromEntries(entries);
  }
  return value;
}
