import { z } from 'zod';
import { invalidParameter, PosthornError } from '../../core/errors.ts';
import { wording } from '../../resources/complaints.ts';
import { plainIssues } from '../../resources/plain-issues.ts';
import { text } from '../../resources/text.ts';

/** Schemas of query values: text in, typed out, so that the OpenAPI document shows the type. */

export function queryInteger({ min, max }: { min: number; max: number }) {
  const isFar = (text: string): boolean => /^-?\d+(\.\d+)?e\+?\d+$/i.test(text) && (Number(text) < min || Number(text) > max);
  return z
    .string()
    .refine((text) => /^-?\d+$/.test(text) || isFar(text), 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(min).max(max));
}

export const queryBoolean = z
  .enum(['true', 'false'])
  .transform((value) => value === 'true')
  .pipe(z.boolean());

/** As clients of the hosted API write it, too. */
export const queryFlag = z
  .enum(['true', 'false', '1', '0'])
  .transform((value) => value === 'true' || value === '1')
  .pipe(z.boolean());

/** Names parameters that are lists. */
const lists = new WeakSet<z.ZodType>();
const maxListed = 100;

/** Several values, separated by commas or each in a parameter of its own; duplicates count once. */
export function queryList<Item extends z.ZodType<unknown, string>>(item: Item, description: string, max = maxListed) {
  const list = z
    .union([z.string(), z.array(z.string())])
    .transform((sent) => [...new Set([sent].flat().flatMap((text) => text.split(',')))])
    .pipe(z.array(item).min(1).max(max))
    .optional()
    .describe(`${description} Several are separated by commas.`);
  lists.add(list);
  return list;
}

export const querySearch = text(0, 200);
const error = 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31';
export const queryTime = z
  .union([z.iso.datetime({ offset: true, error }), z.iso.date({ error })])
  .meta({ id: 'TimeOrDay', description: 'ISO 8601: a time, or a day in UTC.' });
const dayMs = 86_400_000;

const timeWithBlank = /^(\d{4}-\d\d-\d\dT[\d:.]+) (\d\d:\d\d)$/;

/** A plus sign that is not percent-encoded is a blank, which no time has. */
function withPlusSign(value: unknown): unknown {
  return typeof value === 'string' ? value.replace(timeWithBlank, '$1+$2') : value;
}

/** Parameters that clients send to bypass caches. */
const cacheBuster = '_';

/**
 * INVALID_QUERY names what is out of range, and unknown parameters: a misspelt filter would match everything. Where there is
 * no schema nothing can be misspelt, and everything is ignored.
 */
export function parseQuery<Query extends z.ZodObject>(schema: Query | undefined, raw: Record<string, unknown>): z.output<Query> {
  if (schema === undefined) return {} as z.output<Query>;
  const names = Object.keys(schema.shape);
  const unknown = Object.keys(raw)
    .find((name) => !names.includes(name) && name !== cacheBuster)
    ?.slice(0, 100);
  if (unknown !== undefined)
    throw new PosthornError('INVALID_QUERY', `Query: unknown parameter "${unknown}"; there are ${names.join(', ')}.`, {
      details: Object.fromEntries([[unknown, ['is no parameter']]]),
    });
  const known = Object.fromEntries(names.flatMap((name) => (Object.hasOwn(raw, name) ? [[name, withPlusSign(raw[name])]] : [])));
  const repeated = names.find((name) => Array.isArray(known[name]) && !lists.has(schema.shape[name]));
  if (repeated !== undefined) throw invalidParameter(repeated, 'must be given once');
  const parsed = schema.safeParse(known, { error: wording });
  if (parsed.success) return parsed.data;
  const found = plainIssues(parsed.error.issues).map(({ path: [name], message }) => ({ name: String(name), message }));
  // Each value of a list may have the same complaint.
  const issues = [...new Map(found.map((issue) => [`${issue.name} ${issue.message}`, issue])).values()];
  const text = issues.map(({ name, message }) => `${name} ${message}`).join('; ');
  const details = Object.fromEntries(issues.map(({ name, message }) => [name, [message]]));
  throw new PosthornError('INVALID_QUERY', `Query: ${text}.`, { details });
}

export const timeRangeQuery = {
  from: queryTime.optional().describe('Not earlier: ISO 8601.'),
  to: queryTime.optional().describe('Not later: ISO 8601.'),
};

/** The range in milliseconds since the epoch, days in UTC and the last one with all its hours; INVALID_QUERY when it ends before it begins. `names` are those of the two parameters. */
export function timeRange(
  from: string | undefined,
  to: string | undefined,
  names: { from: string; to: string } = { from: 'from', to: 'to' },
): { fromMs?: number; toMs?: number } {
  const fromMs = from === undefined ? undefined : Date.parse(from);
  const toMs = to === undefined ? undefined : Date.parse(to) + (to.includes('T') ? 0 : dayMs - 1);
  if (fromMs !== undefined && toMs !== undefined && toMs < fromMs) throw invalidParameter(names.to, `is before ${names.from}`);
  return { fromMs: sinceEpoch(fromMs), toMs: sinceEpoch(toMs) };
}

/** Nothing is older than 1970, and the indexes support no time before it. */
function sinceEpoch(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.max(0, ms);
}
