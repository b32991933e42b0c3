import type { FormField } from '../../api/form-schema.ts';

export type Body = Record<string, unknown>;

const isObject = (value: unknown): value is Body => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The object that `value` is, or an empty one. */
export function objectIn(value: unknown): Body {
  return isObject(value) ? value : {};
}

/** Without the member where the value is undefined. */
export function withMember(body: Body, name: string, value: unknown): Body {
  const { [name]: _before, ...others } = body;
  return value === undefined ? others : { ...body, [name]: value };
}

/** What a field counts as: its value, or its default. */
function effectiveValue(fields: readonly FormField[], body: Body, name: string): unknown {
  return body[name] ?? fields.find((field) => field.name === name)?.default;
}

export interface Whole {
  fields: readonly FormField[];
  body: Body;
}

/** Whether the field applies with the values of the fields beside it, or of the whole body. */
export function isShown({ when }: FormField, fields: readonly FormField[], body: Body, whole: Whole): boolean {
  if (when === undefined) return true;
  const value = effectiveValue(fields, body, when.field) ?? effectiveValue(whole.fields, whole.body, when.field);
  return when.values.includes(String(value));
}

/** The fields that an object has; those of a union are of the branch that the whole body chooses. */
export function fieldsIn(field: FormField, whole: Whole): readonly FormField[] {
  const { node } = field;
  if (node.kind === 'object' || node.kind === 'objects') return node.fields;
  return node.kind === 'branches' ? (node.branches[String(effectiveValue(whole.fields, whole.body, node.on))] ?? []) : [];
}

/** The body without the fields that do not apply. Members that the form lacks stay: the API validates them. */
export function sentBody(fields: readonly FormField[], body: Body, whole: Whole = { fields, body }): Body {
  let sent = body;
  for (const field of fields) {
    const value = body[field.name];
    if (value === undefined) continue;
    if (!isShown(field, fields, body, whole)) sent = withMember(sent, field.name, undefined);
    else if (hasFields(field) && isObject(value)) {
      const inner = fieldsIn(field, whole);
      const known = field.node.kind === 'branches' ? onlyOf(inner, field, value) : value;
      sent = withMember(sent, field.name, sentBody(inner, known, whole));
    }
  }
  return sent;
}

/** Without the fields of other branches. */
function onlyOf(inner: readonly FormField[], { node }: FormField, value: Body): Body {
  const names = new Set(inner.map(({ name }) => name));
  const others = node.kind === 'branches' ? Object.values(node.branches).flatMap((branch) => branch.map(({ name }) => name)) : [];
  return Object.fromEntries(Object.entries(value).filter(([name]) => names.has(name) || !others.includes(name)));
}

/**
 * Initial values of the form: those members of a record that it has fields for, without those that do not apply. null is the same as a member that is
 * absent. A secret that the record only reports as set is masked.
 */
export function bodyOfRecord(fields: readonly FormField[], record: Body): Body {
  const whole = { fields, body: record };
  const named = Object.fromEntries(fields.map((field) => [field.name, record[field.name] ?? (isStored(field, record) ? mask : undefined)]));
  return sentBody(fields, withoutNulls(fields, named, whole));
}

const mask = '••••';

/** Whether the value is that of a secret which is stored, and not shown. */
export function isMasked(value: unknown): boolean {
  return typeof value === 'string' && value.startsWith(mask);
}

function isStored({ name, node }: FormField, record: Body): boolean {
  return node.kind === 'text' && node.isSecret === true && record[`has${name.charAt(0).toUpperCase()}${name.slice(1)}`] === true;
}

function withoutNulls(fields: readonly FormField[], body: Body, whole: Whole): Body {
  const kept = Object.entries(body).flatMap(([name, value]): [string, unknown][] => {
    if (value === undefined || value === null) return [];
    const field = fields.find((each) => each.name === name);
    // Some records have a map as JSON text.
    if (field?.node.kind === 'map' && typeof value === 'string') return [[name, JSON.parse(value)]];
    return [[name, hasFields(field) && isObject(value) ? withoutNulls(fieldsIn(field, whole), value, whole) : value]];
  });
  return Object.fromEntries(kept);
}

function hasFields(field: FormField | undefined): field is FormField {
  return field?.node.kind === 'object' || field?.node.kind === 'branches';
}

export interface Changes {
  /** The body of a PATCH. */
  patch: Body;
  /** Paths of the fields that are empty now, and that the API cannot empty. */
  stuck: string[];
}

/**
 * What makes `before` into `after`, both without the fields that do not count. The API keeps what is not sent, also within objects, so a field that was
 * emptied is sent as null, as its default or as an empty list. null in `after` is sent as it is.
 */
export function changesOf(
  fields: readonly FormField[],
  before: Body,
  after: Body,
  whole: Whole = { fields, body: after },
  path = '',
): Changes {
  const patch: Body = {};
  const stuck: string[] = [];
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [was, is] = [before[name], after[name]];
    const field = fields.find((each) => each.name === name);
    if (JSON.stringify(was) === JSON.stringify(is)) continue;
    if (is === undefined && field !== undefined && !isShown(field, fields, after, whole)) {
      if (field.isNullable) patch[name] = null;
    } else if (isObject(was) && isMerged(field, before, after) && (isObject(is) || (is === undefined && !field.isNullable))) {
      const inner = changesOf(fieldsIn(field, whole), was, objectIn(is), whole, `${path}${name}.`);
      stuck.push(...inner.stuck);
      if (Object.keys(inner.patch).length > 0) patch[name] = inner.patch;
    } else if (is !== undefined) patch[name] = is;
    else {
      const empty = emptyValue(field);
      const isSame = isEmpty(was) && field?.isAllWithout !== true;
      if (isSame || JSON.stringify(was) === JSON.stringify(empty)) continue;
      if (empty === undefined) stuck.push(`${path}${name}`);
      else patch[name] = empty;
    }
  }
  return { patch, stuck };
}

/** Whether the API keeps what is not sent of the object. It is another object where the field that it counts with has another value. */
function isMerged(field: FormField | undefined, before: Body, after: Body): field is FormField {
  if (!hasFields(field) || field.isReplaced) return false;
  return field.when === undefined || before[field.when.field] === after[field.when.field];
}

/** What is sent for a field that was emptied; undefined: the API has no such value. */
function emptyValue(field: FormField | undefined): unknown {
  if (field === undefined || field.isNullable) return null;
  if (field.default !== undefined) return field.default;
  switch (field.node.kind) {
    case 'list':
    case 'numbers':
    case 'choices':
    case 'references':
    case 'objects':
      return [];
    case 'map':
      return {};
    case 'json':
      return field.node.isObject ? {} : undefined;
    default:
      return undefined;
  }
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;
}

/** `before` with what a PATCH with `patch` would make of it. null stays, so that it is sent. */
export function mergedInto(fields: readonly FormField[], before: Body, patch: Body): Body {
  const all = { fields, body: { ...before, ...patch } };
  const merged = (within: readonly FormField[], was: Body, sent: Body): Body => ({
    ...was,
    ...Object.fromEntries(
      Object.entries(sent).map(([name, value]) => {
        const field = within.find((each) => each.name === name);
        const isPart = hasFields(field) && field.isReplaced !== true && isObject(value);
        return [name, isPart ? merged(fieldsIn(field, all), objectIn(was[name]), value) : value];
      }),
    ),
  });
  return merged(fields, before, patch);
}

/** Paths of the fields that have to be there and are not. */
export function missingFields(fields: readonly FormField[], body: Body, whole: Whole = { fields, body }, path = ''): string[] {
  return fields.flatMap((field) => {
    if (!isShown(field, fields, body, whole)) return [];
    const value = body[field.name];
    if (hasFields(field) && (value !== undefined || field.isRequired))
      return missingFields(fieldsIn(field, whole), objectIn(value), whole, `${path}${field.name}.`);
    return field.isRequired && (value === undefined || value === null) ? [`${path}${field.name}`] : [];
  });
}

export type Complaints = Record<string, string>;

/**
 * Errors of the API for each field, by its path. Some families answer with `details`; the others name the field at the beginning of each part of the
 * message. Empty where the error concerns no field of the form.
 */
export function complaintsOf(
  error: { message: string; details: Readonly<Record<string, readonly string[]>> },
  names: readonly string[],
): Complaints {
  const found: Complaints = {};
  const add = (path: string, text: string): void => {
    const own = path.replace(/^spec\./, '');
    if (names.includes(/^\w+/.exec(own)?.[0] ?? '')) found[own] = own in found ? `${found[own]} ${text}` : text;
  };
  const details = Object.entries(error.details);
  for (const [path, texts] of details) add(path, `${path} ${texts.join(', ')}.`);
  if (details.length > 0) return found;
  for (const part of error.message.split(/; (?=[\w.]+)/)) {
    const path = /^["']?((?:\w+)(?:\.\w+|\[\d+\])*)/.exec(part)?.[1];
    if (path !== undefined) add(path, part.endsWith('.') ? part : `${part}.`);
  }
  return found;
}

/** The complaint of a field; `isWhole`: those of what is in it, too. */
export function complaintAt(complaints: Complaints, path: string, isWhole: boolean): string | undefined {
  if (!isWhole) return complaints[path];
  const within = Object.keys(complaints).filter((each) => each === path || each.startsWith(`${path}.`) || each.startsWith(`${path}[`));
  return within.length === 0 ? undefined : within.map((each) => complaints[each]).join(' ');
}

/** Such as `Destinations` for destinationIds and `Timeout (ms)` for timeoutMs. Ids of other systems stay ids: `External ID`. */
export function labelOf(name: string): string {
  const words = name
    .replace(/Ids$/, 's')
    .replace(/(?<!^(?:external|project|accessKey))Id$/, '')
    .replace(/([A-Z][a-z]|[A-Z]+(?![a-z]))/g, ' $1')
    .replace(/ Ms$/, ' (ms)')
    .trim()
    .toLowerCase()
    .replace(/\b(?:url|ip|tls|id)\b/g, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}
