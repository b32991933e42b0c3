import { z } from 'zod';

/**
 * A field of a spec as a body has it: optional, with the description of the spec or another one. Its default is in the OpenAPI document and not
 * filled in, for on change what is not sent stays.
 */
export function specField<Field extends z.ZodType>(
  field: z.ZodDefault<Field> | z.ZodOptional<Field>,
  description?: string,
): z.ZodOptional<Field> {
  const standard = field instanceof z.ZodDefault ? { default: field.def.defaultValue } : {};
  return field
    .unwrap()
    .optional()
    .meta({ description: description ?? textOf(field), ...standard });
}

/** The same field as a record has it. */
export function shownField<Field extends z.ZodType>(field: z.ZodDefault<Field> | z.ZodOptional<Field>, description?: string): Field {
  return field.unwrap().describe(description ?? textOf(field));
}

/** Description of the field in the spec. */
export function textOf(field: z.ZodDefault<z.ZodType> | z.ZodOptional<z.ZodType>): string {
  const text = field.description ?? field.unwrap().description;
  if (text === undefined) throw new Error('a field of a spec has no description');
  return text;
}
