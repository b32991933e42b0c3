import type { z } from 'zod';

const known = new WeakSet<object>();
/** Names of such fields by the schema of the body. */
const namesOf = new WeakMap<z.ZodObject, readonly string[]>();

/**
 * A body field for a setting of the hosted API that Posthorn lacks. `schema` accepts values that turn it off or match Posthorn's behaviour:
 * they have no effect. Other values are refused, so that nobody relies on them.
 */
export function settingNotHad<Schema extends z.ZodType>(schema: Schema, description: string) {
  const field = schema.optional().describe(description);
  known.add(field);
  return field;
}

/** The body without settings that Posthorn lacks. */
export function withoutSettingsNotHad(schema: z.ZodObject, body: Record<string, unknown>): Record<string, unknown> {
  let names = namesOf.get(schema);
  if (names === undefined) {
    names = Object.keys(schema.shape).filter((name) => known.has(schema.shape[name] ?? schema));
    namesOf.set(schema, names);
  }
  return withoutFields(body, names);
}

/** The body without some fields; the same body where there are none. */
export function withoutFields(body: Record<string, unknown>, names: readonly string[]): Record<string, unknown> {
  return names.length === 0 ? body : Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
}
