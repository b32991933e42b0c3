import type { z } from 'zod';
import { type ErrorCode, PosthornError } from '../core/errors.ts';
import { wording } from '../resources/complaints.ts';
import { fieldPath, isRecord } from '../resources/field-tree.ts';
import { plainIssues } from '../resources/plain-issues.ts';

const deepestNesting = 32;
/** What the parsers of receivers take without being told to. */
const deepestFreeNesting = 512;
const mostComplaints = 5;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The JSON object in a body. MALFORMED_JSON when it is none; what `refuseHostileShapes` refuses is VALIDATION_FAILED. No body at all is an
 * empty object.
 */
export function readJsonObject(bytes: Buffer | undefined, freeField?: string): Record<string, unknown> {
  if (bytes === undefined || bytes.length === 0) return {};
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    throw new PosthornError('MALFORMED_JSON', 'The body is not valid JSON in UTF-8.');
  }
  if (!isRecord(value)) throw new PosthornError('VALIDATION_FAILED', 'The body must be a JSON object.');
  refuseHostileShapes(value, freeField);
  return value;
}

/** Codes of fields whose values the API document gives a code of their own, such as INVALID_URL. */
export type FieldCodes = Readonly<Record<string, ErrorCode>>;

interface BodyReading {
  readOnly?: readonly string[];
  fieldCodes?: FieldCodes;
}

/**
 * What the schema makes of a body; without one there may be no field. UNKNOWN_FIELD or VALIDATION_FAILED name what is wrong, and for the fields in
 * `fieldCodes` the code that the API document gives them. Fields in `readOnly` are ignored, and `isActive` is taken for `enabled` (API decisions,
 * "Both families").
 */
export function parseBody<Body extends z.ZodObject>(
  schema: Body | undefined,
  raw: unknown,
  { readOnly = [], fieldCodes = {} }: BodyReading = {},
): z.output<Body> {
  if (!isRecord(raw)) return {} as z.output<Body>;
  if (schema === undefined) {
    const [field] = Object.keys(raw);
    if (field !== undefined) throw new PosthornError('UNKNOWN_FIELD', `unknown field "${pathText([field])}": this takes no body.`);
    return {} as z.output<Body>;
  }
  const sent = Object.fromEntries(Object.entries(raw).filter(([name]) => !readOnly.includes(name)));
  const parsed = schema.safeParse('enabled' in schema.shape ? withEnabled(sent) : sent, { error: wording });
  if (!parsed.success) throw invalidBody(parsed.error.issues, fieldCodes);
  return parsed.data;
}

function withEnabled(body: Record<string, unknown>): Record<string, unknown> {
  if (!Object.hasOwn(body, 'isActive')) return body;
  const { isActive, ...rest } = body;
  if (Object.hasOwn(rest, 'enabled') && rest['enabled'] !== isActive) {
    throw new PosthornError('VALIDATION_FAILED', 'enabled and isActive are the same field and contradict each other.');
  }
  return { ...rest, enabled: isActive };
}

function invalidBody(issues: readonly z.core.$ZodIssue[], fieldCodes: FieldCodes): PosthornError {
  const complaints = plainIssues(issues).flatMap((issue) => complaintsOf(issue, fieldCodes));
  const codes = new Set(complaints.map((complaint) => complaint.code));
  const own = Object.values(fieldCodes).find((each) => codes.has(each));
  const code = codes.has('UNKNOWN_FIELD') ? 'UNKNOWN_FIELD' : (own ?? 'VALIDATION_FAILED');
  const shown = complaints.slice(0, mostComplaints).map((complaint) => complaint.text);
  if (complaints.length > mostComplaints) shown.push(`and ${complaints.length - mostComplaints} more`);
  const byField = Map.groupBy(complaints.slice(0, mostComplaints), ({ field }) => field);
  const details = Object.fromEntries([...byField].map(([field, group]) => [field, group.map(({ detail }) => detail)]));
  return new PosthornError(code, `${shown.join('; ')}.`, { details });
}

interface Complaint {
  code: ErrorCode;
  text: string;
  field: string;
  /** The text without the field. */
  detail: string;
}

function complaintsOf(issue: z.core.$ZodIssue, fieldCodes: FieldCodes): Complaint[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => {
      const field = pathText([...issue.path, key]);
      return { code: 'UNKNOWN_FIELD', text: `unknown field "${field}"`, field, detail: 'is not a field' };
    });
  }
  const field = pathText(issue.path);
  return [{ code: fieldCodes[field] ?? 'VALIDATION_FAILED', text: `${field} ${issue.message}`, field, detail: issue.message }];
}

function pathText(path: readonly PropertyKey[]): string {
  const text = fieldPath(path);
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}

/**
 * VALIDATION_FAILED for nesting beyond 32 levels, UNKNOWN_FIELD for keys named `__proto__`, which code that copies objects trips over. `freeField`
 * holds what is handed on and not copied: there any key may be, and nesting of 512 levels.
 */
export function refuseHostileShapes(body: Record<string, unknown>, freeField?: string): void {
  refuseKey(body);
  for (const [name, value] of Object.entries(body)) {
    if (name === freeField) refuseDeep(value, { levels: deepestFreeNesting, where: freeField, isOwn: false }, 1);
    else refuseDeep(value, ownShape, 2);
  }
}

interface Shape {
  levels: number;
  where: string;
  isOwn: boolean;
}

const ownShape: Shape = { levels: deepestNesting, where: 'The body', isOwn: true };

function refuseDeep(value: unknown, shape: Shape, level: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (level > shape.levels) throw new PosthornError('VALIDATION_FAILED', `${shape.where} is nested deeper than ${shape.levels} levels.`);
  if (shape.isOwn) refuseKey(value);
  for (const each of Array.isArray(value) ? value : Object.values(value)) refuseDeep(each, shape, level + 1);
}

function refuseKey(value: object): void {
  if (Object.hasOwn(value, '__proto__')) throw new PosthornError('UNKNOWN_FIELD', 'unknown field "__proto__".');
}
