import { z } from 'zod';
import { canonicalJson } from '../core/canonical-json.ts';
import { isRecord } from './field-tree.ts';
import { nanosecondsOf } from './text.ts';

/**
 * A value of the schema such that those have the same canonical JSON that the API server's `==` calls equal: the order of a set or of named items does not count, and a time
 * is the same in every zone. Members that have the default of their field are left out.
 */
export function canonicalValue(schema: z.core.$ZodType, value: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return canonicalValue(schema.unwrap(), value);
  if (schema instanceof z.ZodObject && isRecord(value)) return canonicalMembers(schema, value);
  if (schema instanceof z.ZodArray && Array.isArray(value)) {
    const items = value.map((item: unknown) => canonicalValue(schema.element, item));
    const listType = schema.meta()?.['x-kubernetes-list-type'];
    return listType === 'set' || listType === 'map' ? items.sort(byText) : items;
  }
  const isTime = schema instanceof z.ZodString && schema.meta()?.['format'] === 'date-time';
  return isTime && typeof value === 'string' ? String(nanosecondsOf(value)) : value;
}

function canonicalMembers(schema: z.ZodObject, value: Record<string, unknown>): Record<string, unknown> {
  const members = Object.entries<z.core.$ZodType>(schema.shape).flatMap(([name, field]): [string, unknown][] => {
    if (value[name] === undefined) return [];
    const member = canonicalValue(field, value[name]);
    const isDefault = field instanceof z.ZodDefault && canonicalJson(member) === canonicalJson(field.def.defaultValue);
    return isDefault ? [] : [[name, member]];
  });
  return Object.fromEntries(members);
}

function byText(one: unknown, other: unknown): number {
  const [a, b] = [canonicalJson(one), canonicalJson(other)];
  return a < b ? -1 : Number(a > b);
}
