import type { z } from 'zod';

const known = new WeakSet<object>();

/**
 * A field of a body for a setting of the hosted API that Posthorn does not have. `schema` takes what says that it is off, or what Posthorn does anyway:
 * then nothing comes of it. Anything else is refused, so that nobody takes it for granted.
 */
export function settingNotHad<Schema extends z.ZodType>(schema: Schema, description: string) {
  const field = schema.optional().describe(description);
  known.add(field);
  return field;
}

/** What a body says beside settings that Posthorn does not have. */
export function withoutSettingsNotHad(schema: z.ZodObject, body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !known.has(schema.shape[name] ?? schema)));
}
