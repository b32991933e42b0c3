import { type FieldNode, isRecord } from '../../resources/field-tree.ts';
import { itemElement, unknownField } from './field-set.ts';

/**
 * The live value with what was applied laid over it: objects and maps field by field, lists of type `map` item by item,
 * `set`s as a union, everything else replaced. Items take the order in which they were applied; items that only the live
 * list has keep their position before the next one that both have (structured-merge-diff, `Merge`).
 */
export function merged(live: unknown, applied: unknown, node: FieldNode): unknown {
  if (applied === undefined) return live;
  if (live === undefined) return applied;
  switch (node.type) {
    case 'leaf':
      return applied;
    case 'object':
      if (node.atomic || !isRecord(live) || !isRecord(applied)) return applied;
      return mergedFields(live, applied, (name) => node.fields.get(name) ?? unknownField);
    case 'map':
      return isRecord(live) && isRecord(applied) ? mergedFields(live, applied, () => node.values) : applied;
    case 'list':
      if (node.listType === 'atomic' || !Array.isArray(live) || !Array.isArray(applied)) return applied;
      return mergedItems(live, applied, node);
  }
}

function mergedFields(
  live: Record<string, unknown>,
  applied: Record<string, unknown>,
  nodeOf: (name: string) => FieldNode,
): Record<string, unknown> {
  const result: Record<string, unknown> = { ...live };
  for (const [name, value] of Object.entries(applied)) result[name] = merged(live[name], value, nodeOf(name));
  return result;
}

function mergedItems(live: readonly unknown[], applied: readonly unknown[], node: FieldNode & { type: 'list' }): unknown[] {
  const liveByElement = new Map(live.map((item) => [itemElement(item, node), item]));
  const inApplied = new Set(applied.map((item) => itemElement(item, node)));
  const taken = new Set<string>();
  const result: unknown[] = [];
  let next = 0;
  const takeApplied = (): void => {
    const item: unknown = applied[next++];
    const element = itemElement(item, node);
    taken.add(element);
    result.push(node.listType === 'map' ? merged(liveByElement.get(element), item, node.item) : item);
  };
  for (const item of live) {
    const element = itemElement(item, node);
    if (!inApplied.has(element)) result.push(item);
    else while (!taken.has(element)) takeApplied();
  }
  while (next < applied.length) takeApplied();
  return result;
}
