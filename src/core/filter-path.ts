/** What a filter looks at. `headers` has lower-case names; a name that occurs several times may have a list of values. */
export interface FilterContext {
  /** The parsed JSON payload; undefined when it is not JSON. Read only when a condition needs it. */
  readonly payload: unknown;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Reads the value that a field names; undefined when there is none. */
export type FieldReader = (context: FilterContext) => unknown;

const ofHeaders = 'headers.';

/** Whether a field names a header. */
export function isHeaderField(field: string): boolean {
  return field.startsWith(ofHeaders);
}

const indexPattern = /^(?:0|[1-9][0-9]*)$/;

/**
 * Reader of a condition's `field`: `headers.X-Name` (any case; all of the rest is the name), `payload`, `payload.x.y`, or a
 * plain path `x.y` into the payload. Array elements by index: `items.0.id` or `items[0].id`. Null for a path that has an
 * empty segment. Only own properties are read, so `__proto__` or `constructor` is found when the payload says so, and never else.
 */
export function fieldReader(field: string): FieldReader | null {
  if (isHeaderField(field)) {
    const name = field.slice(ofHeaders.length).toLowerCase();
    return name === '' ? null : ({ headers }) => headerValue(headers, name);
  }
  const segments = field.replace(/\[([0-9]+)\]/g, '.$1').split('.');
  if (segments.includes('')) return null;
  const path = segments[0] === 'payload' ? segments.slice(1) : segments;
  return ({ payload }) => path.reduce<unknown>(child, payload);
}

function headerValue(headers: FilterContext['headers'], name: string): string | undefined {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
  return Array.isArray(value) ? value.join(', ') : value;
}

function child(parent: unknown, segment: string): unknown {
  if (typeof parent !== 'object' || parent === null) return undefined;
  if (Array.isArray(parent)) return indexPattern.test(segment) ? parent[Number(segment)] : undefined;
  return Object.getOwnPropertyDescriptor(parent, segment)?.value;
}
