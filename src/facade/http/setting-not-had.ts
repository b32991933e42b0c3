import type { z } from 'zod';

const known = new WeakSet<object>();

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
  return Object.fromEntries(Object.entries(body).filter(([name]) => !known.has(schema.shape[name] ?? schema)));
}
