import { z } from 'zod';
import { PosthornError } from '../core/errors.ts';
import { wording } from '../resources/complaints.ts';
import { plainIssues } from '../resources/plain-issues.ts';

/** Schemas of query values: text in, typed out, so that the OpenAPI document shows the type. */

export function queryInteger(range: { min: number; max: number }) {
  return z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(range.min).max(range.max));
}

export const queryBoolean = z
  .enum(['true', 'false'])
  .transform((value) => value === 'true')
  .pipe(z.boolean());

export const querySearch = z.string().max(200);
const queryTime = z.iso.datetime({ offset: true, error: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z' });

/** INVALID_QUERY names what is out of range. Names that the schema does not know are ignored. */
export function parseQuery<Query extends z.ZodObject>(schema: Query | undefined, raw: Record<string, unknown>): z.output<Query> {
  const known = Object.fromEntries(
    Object.keys(schema?.shape ?? {}).flatMap((name) => (Object.hasOwn(raw, name) ? [[name, raw[name]]] : [])),
  );
  const parsed = schema?.safeParse(known, { error: wording });
  if (parsed?.success === false) {
    const issues = plainIssues(parsed.error.issues).map(({ path, message }) => ({ name: path.join('.'), message }));
    const text = issues.map(({ name, message }) => `${name} ${message}`).join('; ');
    const details = Object.fromEntries(issues.map(({ name, message }) => [name, [message]]));
    throw new PosthornError('INVALID_QUERY', `Query: ${text}.`, { details });
  }
  return (parsed?.data ?? {}) as z.output<Query>;
}

export const timeRangeQuery = {
  from: queryTime.optional().describe('Not earlier: ISO 8601.'),
  to: queryTime.optional().describe('Not later: ISO 8601.'),
};

/** The range in milliseconds since the epoch; INVALID_QUERY when it ends before it begins. */
export function timeRange(from: string | undefined, to: string | undefined): { fromMs?: number; toMs?: number } {
  const fromMs = from === undefined ? undefined : Date.parse(from);
  const toMs = to === undefined ? undefined : Date.parse(to);
  if (fromMs !== undefined && toMs !== undefined && toMs < fromMs) throw new PosthornError('INVALID_QUERY', 'Query: to is before from.');
  return { fromMs, toMs };
}
