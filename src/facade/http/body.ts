import { z } from 'zod';
import { type ErrorCode, PosthornError } from '../../core/errors.ts';
import { isContainer } from '../../core/exact-number.ts';
import { inOnePiece } from '../../core/in-one-piece.ts';
import { parseLargeJson, TooDeepError, TooManyMembersError } from '../../core/large-json.ts';
import { parseJson } from '../../core/read-json.ts';
import { repeatedMember } from '../../core/repeated-members.ts';
import { type Excess, excessIn } from '../../resources/excess.ts';
import { fieldPath, isRecord } from '../../resources/field-tree.ts';
import { plainIssues } from '../../resources/plain-issues.ts';
import { parseWithNumbers } from '../../resources/plain-numbers.ts';
import { withoutFields, withoutSettingsNotHad } from './setting-not-had.ts';

const deepestNesting = 32;
/** Default limit of the parsers of receivers. */
const deepestFreeNesting = 512;
const maxComplaints = 5;
/** Members of an object or list outside the free field, at most; no schema takes so many. */
const maxMembers = 20_000;
/** Members of any object, at most: listing the keys of a larger one blocks the event loop too long. */
const maxObjectMembers = 50_000;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** A body of more bytes is read and validated in chunks. */
export const largeBodyBytes = 64 * 1024;

/**
 * The JSON object in a body. MALFORMED_JSON when it is none; what `refuseHostileShapes` refuses is VALIDATION_FAILED. No body at all is an
 * empty object.
 */
export function readJsonObject(bytes: Buffer, freeField?: string): Record<string, unknown> {
  if (bytes.length === 0) return {};
  let value: unknown;
  try {
    value = parseJson(utf8.decode(bytes));
  } catch {
    throw malformed();
  }
  const body = requireObject(value);
  refuseHostileShapes(body, freeField);
  refuseRepeated(inOnePiece(repeatedMember(bytes, freeField)));
  return body;
}

/** The same in pieces, for a large body: yields between them. */
export function* readLargeJsonObject(bytes: Buffer, freeField?: string): Generator<undefined, Record<string, unknown>> {
  const body = requireObject(yield* parsedInPieces(bytes, freeField));
  yield;
  yield* hostileShapes(body, freeField);
  refuseRepeated(yield* repeatedMember(bytes, freeField));
  return body;
}

/** The parsers of senders, proxies and receivers do not agree on which of two members counts. */
export function refuseRepeated(path: readonly (string | number)[] | null): void {
  if (path === null) return;
  const at = pathText(path);
  throw new PosthornError('VALIDATION_FAILED', `The body has ${at} twice.`, { details: { [at]: ['occurs twice in its object'] } });
}

function* parsedInPieces(bytes: Buffer, freeField: string | undefined): Generator<undefined, unknown> {
  try {
    return yield* parseLargeJson(bytes, { maxMembers, maxObjectMembers, freeField });
  } catch (error) {
    if (error instanceof TooDeepError)
      throw tooDeep(error.path[0] === freeField && freeField !== undefined ? freeShape(freeField) : ownShape, error.path);
    if (error instanceof TooManyMembersError)
      throw new PosthornError('VALIDATION_FAILED', `The body has an object or list of ${error.message}.`, {
        details: { [pathText(error.path)]: [`has ${error.message}`] },
      });
    throw malformed();
  }
}

function malformed(): PosthornError {
  return new PosthornError('MALFORMED_JSON', 'The body is not valid JSON in UTF-8.');
}

function requireObject(value: unknown): Record<string, unknown> {
  if (!isRecord(value)) throw new PosthornError('VALIDATION_FAILED', 'The body must be a JSON object.');
  return value;
}

/** Codes of fields whose invalid values have a code of their own, such as INVALID_URL. */
export type FieldCodes = Readonly<Record<string, ErrorCode>>;

export interface BodyReading {
  readOnly?: readonly string[];
  fieldCodes?: FieldCodes;
}

/**
 * Returns what the schema makes of a body; without a schema there may be no field. UNKNOWN_FIELD or VALIDATION_FAILED name what is wrong, or for the fields in
 * `fieldCodes` their own code. Fields in `readOnly` are ignored, so that a client may send back a record as it has read it.
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
  const excess = excessIn(schema, raw, readOnly);
  if (excess !== null) throw tooLarge(excess);
  const sent = withoutFields(raw, readOnly);
  const parsed = parseWithNumbers(schema, sent);
  if (!parsed.success) throw invalidBody(parsed.error.issues, fieldCodes);
  return withoutSettingsNotHad(schema, parsed.data) as z.output<Body>;
}

const enoughIssues = 100;

/**
 * The same in pieces, of a body whose field `records` is a list of very many: yields between them. The other fields come first, and then the records
 * until a hundred things are wrong.
 */
export function* parseRecords<Body extends z.ZodObject>(
  schema: Body,
  raw: unknown,
  { records, fieldCodes = {} }: BodyReading & { records: string },
): Generator<undefined, z.output<Body>> {
  const list = schema.shape[records];
  const items = isRecord(raw) ? raw[records] : undefined;
  if (!(list instanceof z.ZodArray) || !Array.isArray(items)) return parseBody(schema, raw, { fieldCodes });
  const others: Record<string, unknown> = parseBody(withPlainItems(schema, records, list), raw, { fieldCodes });
  const parsed: unknown[] = [];
  const issues: z.core.$ZodIssue[] = [];
  for (const [i, item] of items.entries()) {
    yield;
    const path = [records, i];
    const excess = excessIn(list.element, item);
    if (excess !== null) throw tooLarge({ ...excess, path: [...path, ...excess.path] });
    const { data, error } = parseWithNumbers(list.element, item);
    parsed.push(data);
    issues.push(...(error?.issues ?? []).map((issue) => ({ ...issue, path: [...path, ...issue.path] })));
    if (issues.length >= enoughIssues) break;
  }
  if (issues.length > 0) throw invalidBody(issues, fieldCodes);
  return { ...others, [records]: parsed } as z.output<Body>;
}

const plainItems = new WeakMap<z.ZodObject, z.ZodObject>();

/** The schema of everything but the records themselves. */
function withPlainItems(schema: z.ZodObject, records: string, list: z.ZodArray): z.ZodObject {
  const known = plainItems.get(schema);
  if (known !== undefined) return known;
  const made = schema.extend({ [records]: new z.ZodArray({ ...list.def, element: z.unknown() }) });
  plainItems.set(schema, made);
  return made;
}

function tooLarge(excess: Excess): PosthornError {
  if ('keys' in excess) {
    const fields = excess.keys.slice(0, maxComplaints).map((key) => pathText([...excess.path, key]));
    const details = Object.fromEntries(fields.map((field) => [field, ['is not a field']]));
    const text = `${fields.map((field) => `unknown field "${field}"`).join('; ')}; and more than ${excess.keys.length - fields.length - 1} more.`;
    return new PosthornError('UNKNOWN_FIELD', text, { details });
  }
  const field = pathText(excess.path);
  return new PosthornError('VALIDATION_FAILED', `${field} ${excess.message}.`, { details: { [field]: [excess.message] } });
}

function invalidBody(issues: readonly z.core.$ZodIssue[], fieldCodes: FieldCodes): PosthornError {
  const complaints = plainIssues(issues).flatMap((issue) => complaintsOf(issue, fieldCodes));
  const codes = new Set(complaints.map((complaint) => complaint.code));
  const own = Object.values(fieldCodes).find((each) => codes.has(each));
  const code = codes.has('UNKNOWN_FIELD') ? 'UNKNOWN_FIELD' : (own ?? 'VALIDATION_FAILED');
  const shown = complaints.slice(0, maxComplaints).map((complaint) => complaint.text);
  if (complaints.length > maxComplaints) shown.push(`and ${complaints.length - maxComplaints} more`);
  const byField = Map.groupBy(complaints.slice(0, maxComplaints), ({ field }) => field);
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
 * is passed through uncopied: it may have any keys and 512 levels of nesting.
 */
function refuseHostileShapes(body: Record<string, unknown>, freeField?: string): void {
  inOnePiece(hostileShapes(body, freeField));
}

/** `refuseHostileShapes` in pieces: yields between them. */
export function* hostileShapes(body: Record<string, unknown>, freeField?: string): Generator<undefined, void> {
  if (hasPrototypeKey(body)) throw prototypeKey([]);
  for (const [name, value] of Object.entries(body)) {
    if (!isContainer(value)) continue;
    if (name === freeField) yield* refuseDeep({ value, level: 1, key: name, outer: null }, freeShape(freeField));
    else yield* refuseDeep({ value, level: 2, key: name, outer: null }, ownShape);
  }
}

interface Shape {
  levels: number;
  where: string;
  isOwn: boolean;
}

const ownShape: Shape = { levels: deepestNesting, where: 'The body', isOwn: true };
const freeShape = (field: string): Shape => ({ levels: deepestFreeNesting, where: field, isOwn: false });
const looksPerPiece = 10_000;

interface Part {
  value: object;
  level: number;
  key: string | number;
  outer: Part | null;
}

function* refuseDeep(root: Part, shape: Shape): Generator<undefined, void> {
  let looks = 0;
  const rest: Part[] = [root];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    if (++looks % looksPerPiece === 0) yield;
    const { value, level } = next;
    if (level > shape.levels) throw tooDeep(shape, pathTo(next));
    if (shape.isOwn && hasPrototypeKey(value)) throw prototypeKey(pathTo(next));
    const keys = Array.isArray(value) ? null : Object.keys(value);
    const parts: unknown[] = Array.isArray(value) ? value : Object.values(value);
    for (const [i, each] of parts.entries()) {
      if (++looks % looksPerPiece === 0) yield;
      if (isContainer(each)) rest.push({ value: each, level: level + 1, key: keys?.[i] ?? i, outer: next });
    }
  }
}

function pathTo(part: Part): PropertyKey[] {
  const path: PropertyKey[] = [];
  for (let each: Part | null = part; each !== null; each = each.outer) path.push(each.key);
  return path.reverse();
}

function tooDeep({ where, levels }: Shape, path: readonly PropertyKey[]): PosthornError {
  const complaint = `is nested deeper than ${levels} levels`;
  return new PosthornError('VALIDATION_FAILED', `${where} ${complaint}.`, { details: { [pathText(path)]: [complaint] } });
}

function hasPrototypeKey(value: object): boolean {
  return Object.hasOwn(value, '__proto__');
}

function prototypeKey(path: readonly PropertyKey[]): PosthornError {
  const details = { [pathText([...path, '__proto__'])]: ['is not a field'] };
  return new PosthornError('UNKNOWN_FIELD', 'unknown field "__proto__".', { details });
}
