import { z } from 'zod';
import { ExactNumber } from '../core/exact-number.ts';
import { wording } from './complaints.ts';
import { isRecord } from './field-tree.ts';

/** Output of the schema for a value of `parseJson`: where it takes numbers they are doubles, and where it takes anything they keep their text. */
export function parseWithNumbers<Schema extends z.core.$ZodType>(schema: Schema, value: unknown): z.ZodSafeParseResult<z.output<Schema>> {
  const parsed = z.safeParse(schema, value, { error: wording });
  if (parsed.success) return parsed;
  // Hardly any body has such a number where the schema has one.
  const plain = plainNumbers(schema, value);
  return plain === value ? parsed : z.safeParse(schema, plain, { error: wording });
}

/**
 * The value with doubles instead of `ExactNumber`, but for where the schema takes anything; where it takes a number as well as any such text they are
 * their text. The same value when there is nothing to be replaced.
 */
export function plainNumbers(schema: z.core.$ZodType, value: unknown): unknown {
  const inner = innermost(schema);
  if (inner instanceof z.ZodUnknown || inner instanceof z.ZodAny) return value;
  if (value instanceof ExactNumber) return inner instanceof z.ZodUnion && takesText(inner, value.text) ? value.text : value.double;
  if (inner instanceof z.ZodUnion) return inner.options.reduce<unknown>((made, option) => plainNumbers(option, made), value);
  if (Array.isArray(value)) return inner instanceof z.ZodArray ? plainItems(inner.element, value) : value;
  if (!isRecord(value)) return value;
  if (inner instanceof z.ZodRecord) return plainMembers(value, () => inner.valueType);
  return inner instanceof z.ZodObject
    ? plainMembers(value, (name) => (Object.hasOwn(inner.shape, name) ? inner.shape[name] : undefined))
    : value;
}

/** Without optional, default, nullable and the like. */
function innermost(schema: z.core.$ZodType): z.core.$ZodType {
  if ('innerType' in schema._zod.def) return innermost(schema._zod.def.innerType as z.core.$ZodType);
  return schema instanceof z.ZodPipe ? innermost(schema.in) : schema;
}

function takesText({ options }: z.ZodUnion, text: string): boolean {
  return options.some((option) => innermost(option) instanceof z.ZodString && z.safeParse(option, text).success);
}

function plainItems(element: z.core.$ZodType, items: readonly unknown[]): unknown {
  const made = items.map((item) => plainNumbers(element, item));
  return made.some((item, i) => item !== items[i]) ? made : items;
}

function plainMembers(value: Record<string, unknown>, schemaOf: (name: string) => z.core.$ZodType | undefined): Record<string, unknown> {
  let isChanged = false;
  const members = Object.entries(value).map(([name, member]) => {
    const schema = schemaOf(name);
    const plain = schema === undefined ? member : plainNumbers(schema, member);
    isChanged ||= plain !== member;
    return [name, plain] as const;
  });
  return isChanged ? Object.fromEntries(members) : value;
}
