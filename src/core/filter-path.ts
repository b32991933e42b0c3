import { isSentCredentialParameter } from './credential-names.ts';
import { isContainer } from './exact-number.ts';
import { isForwardedHeader } from './forwarded-headers.ts';
import { headerText } from './joined-headers.ts';
import { parsePlainJson } from './plain-json.ts';
import type { QueryParameters } from './sent-query.ts';

/** The input of a filter. `headers` has lower-case names; a name that occurs several times, there or in the query, may have a list of values. */
export interface FilterContext {
  /** The parsed JSON payload; undefined when it is not JSON. Read only when a condition needs it. */
  readonly payload: unknown;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly query: Readonly<QueryParameters>;
}

/** Reads the value that a field names; undefined when there is none. */
export type FieldReader = (context: FilterContext) => unknown;

/** A member name, or an index, which counts from the end when it is negative. */
type Segment = string | number;

const headerPrefix = /^headers(?=\.|\[\s*['"])/;
const queryPrefix = /^query(?=[.[])/;
/** A field name of RFC 9110. */
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const elementIndex = /^(?:0|[1-9][0-9]*)$/;
/** Blanks and quotes at the ends of a name between dots are mistakes more often than part of the name. */
const needsQuotes = /^[\s'"`]|[\s'"`]$/;
const plainName = /[^.[\]\\]+/y;
/** An index of RFC 9535. */
const bracketedIndex = /\[\s*(0|-?[1-9][0-9]{0,14})\s*\]/y;
/** A member name of RFC 9535, in quotes. */
const bracketedName = /\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]/sy;

/** Whether a field names a header. */
export function isHeaderField(field: string): boolean {
  return headerPrefix.test(field);
}

/** Whether the value that a field names is not stored with an event: a credential in a header or in the query, or what belongs to the connection. */
export function isWithheldField(field: string): boolean {
  if (isHeaderField(field)) return !isForwardedHeader(headerNameOf(field.slice('headers'.length)) ?? '');
  const [, name] = queryPrefix.test(field) ? segmentsOf(field) : [];
  return typeof name === 'string' && isSentCredentialParameter(name);
}

/**
 * Returns the reader of a condition's `field`: `headers.X-Name` or `headers['X-Name']` (any case), `payload`, or a path into the payload with or without
 * `payload` at its head. A path has names between dots, and brackets as in RFC 9535: a quoted name (`['a.b']`, `["a.b"]`, with its escapes) or an index
 * (`[0]`; `[-1]` is the last element). A name between dots has no dot, bracket or backslash; digits there are an index, too (`items.0.id`).
 * Only own properties are read, so `__proto__` or `constructor` is found only if the payload has it. Returns the error for any other text,
 * which would match nothing.
 *
 * `query.name` and `query['name']` are a parameter of the URL, with an index one of its values. Where the URL has none of that name they are the path into the
 * payload.
 */
export function fieldReader(field: string): FieldReader | string {
  if (isHeaderField(field)) {
    const name = headerNameOf(field.slice('headers'.length));
    return name === null ? 'must name one header, as headers.X-Name' : ({ headers }) => headerValue(headers, name.toLowerCase());
  }
  const segments = segmentsOf(field);
  if (typeof segments === 'string') return segments;
  const read = payloadReader(field, segments);
  return queryPrefix.test(field) ? queryReader(segments.slice(1), read) : read;
}

/** `payload` at the head of a field, without brackets, is the payload itself. */
function payloadReader(field: string, segments: readonly Segment[]): FieldReader {
  const path = segments[0] === 'payload' && field.startsWith('payload') ? segments.slice(1) : segments;
  return ({ payload }) => path.reduce<unknown>(child, payload);
}

function queryReader([name, index, ...more]: Segment[], elsewhere: FieldReader): FieldReader {
  const isIndex = typeof index === 'number' || (index !== undefined && elementIndex.test(index));
  if (typeof name !== 'string' || more.length > 0 || (index !== undefined && !isIndex)) return elsewhere;
  return (context) => {
    if (!Object.hasOwn(context.query, name)) return elsewhere(context);
    const value = context.query[name];
    return isIndex ? [value].flat().at(Number(index)) : value;
  };
}

/** The name in `.X-Name` or `['X-Name']`. */
function headerNameOf(rest: string): string | null {
  const segments = rest.startsWith('.') ? [rest.slice(1)] : segmentsOf(rest);
  const [name] = segments;
  return segments.length === 1 && typeof name === 'string' && headerName.test(name) ? name : null;
}

/** Returns the segments of a path, or the complaint about it. */
function segmentsOf(path: string): Segment[] | string {
  const segments: Segment[] = [];
  let at = 0;
  const next = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(path);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  while (at < path.length || segments.length === 0) {
    const rest = path.slice(at);
    if (rest.startsWith('[')) {
      const index = next(bracketedIndex);
      const name = index === null ? next(bracketedName) : null;
      const segment = index !== null ? Number(index[1]) : name !== null ? unquoted(name) : null;
      if (segment === null) return `has a bracket without an index or a name in quotes, as [0] or ['a.b']: ${shown(rest)}`;
      segments.push(segment);
      continue;
    }
    if (segments.length > 0) {
      if (!rest.startsWith('.')) return `needs a dot or a bracket before ${shown(rest)}`;
      at++;
    }
    const name = next(plainName)?.[0] ?? '';
    if (name === '' && /^[.[]?$/.test(path[at] ?? '')) return 'has an empty segment';
    if (needsQuotes.test(name) || /[\]\\]/.test(path[at] ?? ''))
      return `has a name that needs brackets and quotes, as payload['a.b']: ${shown(rest)}`;
    if (name === '*') return 'has a wildcard; a field names one value';
    if (name === '$' && segments.length === 0) return "must not begin with $; write payload.x, or ['$'] for a member of that name";
    segments.push(name);
  }
  return segments;
}

function shown(rest: string): string {
  return rest.length > 20 ? `${rest.slice(0, 20)}…` : rest;
}

/** Null: an escape that JSON lacks. */
function unquoted([, single, double = '']: RegExpExecArray): string | null {
  // A string in single quotes differs from a JSON string in the quotes alone.
  const text =
    single === undefined
      ? double
      : single.replaceAll(/\\(.)|"/gs, (part, escaped: string | undefined) => (escaped === "'" ? "'" : part === '"' ? '\\"' : part));
  try {
    return parsePlainJson(`"${text}"`) as string;
  } catch {
    return null;
  }
}

function headerValue(headers: FilterContext['headers'], name: string): string | undefined {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
  return value === undefined ? undefined : headerText(Array.isArray(value) ? value.join(', ') : value);
}

function child(parent: unknown, segment: Segment): unknown {
  if (!isContainer(parent)) return undefined;
  if (Array.isArray(parent)) {
    if (typeof segment === 'number') return parent.at(segment);
    return elementIndex.test(segment) ? parent[Number(segment)] : undefined;
  }
  // An index names the member of an object that has its digits for a name, too.
  return Object.getOwnPropertyDescriptor(parent, segment)?.value;
}
