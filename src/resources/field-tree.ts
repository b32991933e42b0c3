import { z } from 'zod';
import { isContainer } from '../core/exact-number.ts';
import { targetOf } from './fields.ts';

/**
 * The shape of a schema without its checks: what null pruning, duplicate detection, server-side apply and rule paths
 * walk over. `list` carries `x-kubernetes-list-type`; an `object` is granular (each field has its owner) unless
 * `atomic`; a `map` has free keys and is granular. `refersTo`: the kind of the object that it names.
 */
export type FieldNode =
  | { type: 'leaf'; nullable: boolean }
  | { type: 'object'; nullable: boolean; atomic: boolean; fields: ReadonlyMap<string, FieldNode>; refersTo?: string }
  | { type: 'map'; nullable: boolean; values: FieldNode }
  | { type: 'list'; nullable: boolean; listType: 'atomic' | 'set'; item: FieldNode }
  | { type: 'list'; nullable: boolean; listType: 'map'; keys: readonly string[]; item: FieldNode };

const listMeta = z.looseObject({
  'x-kubernetes-list-type': z.enum(['atomic', 'set', 'map']).default('atomic'),
  'x-kubernetes-list-map-keys': z.array(z.string()).default([]),
});

/** The tree of a zod schema made of objects, records, arrays and scalars, under any optional, default or nullable. */
export function fieldTree(schema: z.core.$ZodType): FieldNode {
  let inner = schema;
  let nullable = false;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault || inner instanceof z.ZodNullable) {
    nullable ||= inner instanceof z.ZodNullable;
    inner = inner.unwrap();
  }
  if (inner instanceof z.ZodObject) {
    const fields = Object.entries<z.core.$ZodType>(inner.shape).map(([name, field]) => [name, fieldTree(field)] as const);
    const target = targetOf(inner);
    return {
      type: 'object',
      nullable,
      atomic: inner.meta()?.['x-kubernetes-map-type'] === 'atomic',
      fields: new Map(fields),
      ...(target !== undefined && { refersTo: target }),
    };
  }
  if (inner instanceof z.ZodRecord) return { type: 'map', nullable, values: fieldTree(inner.valueType) };
  if (inner instanceof z.ZodArray) {
    const meta = listMeta.parse(inner.meta() ?? {});
    const item = fieldTree(inner.element);
    const listType = meta['x-kubernetes-list-type'];
    if (listType === 'map') return { type: 'list', nullable, listType, keys: meta['x-kubernetes-list-map-keys'], item };
    return { type: 'list', nullable, listType, item };
  }
  return { type: 'leaf', nullable: nullable || inner instanceof z.ZodUnknown };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return isContainer(value) && !Array.isArray(value);
}

/** `spec`, `conditions`, 0, `value` → `spec.conditions[0].value`, as the API server writes it. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
}
