import type { FieldNode } from './field-tree.ts';
import type { Kind } from './kinds.ts';
import { objectSchema } from './object-schema.ts';

/**
 * How server-side apply merges objects of a kind: the tree of the whole object. At each node:
 *
 * - `leaf`: owned and replaced as a whole (also values of any type, such as `spec.conditions[].value`)
 * - `object`: each field of `fields` has its own owners; with `atomic` the object is owned and replaced as a whole
 * - `map`: like `object`, with free keys (labels, annotations, Secret data); all values are `values`
 * - `list` with `listType` `atomic`: owned and replaced as a whole; `set`: each value is owned (`v:`); `map`: items are
 *   distinguished by the fields `keys` (`k:`) and merge as `item`
 *
 * `nullable`: whether null is a value at a path; elsewhere it is dropped before merging.
 */
export function mergeSchema(kind: Kind): FieldNode {
  return objectSchema(kind).tree;
}
