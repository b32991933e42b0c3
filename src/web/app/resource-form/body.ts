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

/** Whether the field counts with what the fields beside it, or those of the whole body, say. */
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

/** The body without the fields that do not count. Members that the form does not know stay: the API says what it thinks of them. */
export function sentBody(fields: readonly FormField[], body: Body, whole: Whole = { fields, body }): Body {
  let sent = body;
  for (const field of fields) {
    const value = body[field.name];
    if (value === undefined) continue;
    if (!isShown(field, fields, body, whole)) sent = withMember(sent, field.name, undefined);
    else if ((field.node.kind === 'object' || field.node.kind === 'branches') && isObject(value)) {
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

/** What the form begins with: those members of a record that it has fields for. null says the same as a member that is not there. */
export function bodyOfRecord(fields: readonly FormField[], record: Body): Body {
  return Object.fromEntries(
    fields.flatMap(({ name }) => (record[name] === undefined || record[name] === null ? [] : [[name, record[name]]])),
  );
}

/** The body of a PATCH: the members that differ. One that is gone is null; one within an object, too, where null removes it. */
export function changesOf(fields: readonly FormField[], before: Body, after: Body): Body {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const changed = [...names].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  return Object.fromEntries(
    changed.map((name) => {
      const field = fields.find((each) => each.name === name);
      const value = after[name] ?? null;
      if (field?.node.kind !== 'object' || !isObject(value)) return [name, value];
      const was = objectIn(before[name]);
      const gone = field.node.fields.filter(
        (inner) => inner.isNullable && was[inner.name] !== undefined && value[inner.name] === undefined,
      );
      return [name, { ...value, ...Object.fromEntries(gone.map((inner) => [inner.name, null])) }];
    }),
  );
}

/** Paths of the fields that have to be there and are not. */
export function missingFields(fields: readonly FormField[], body: Body, whole: Whole = { fields, body }, path = ''): string[] {
  return fields.flatMap((field) => {
    if (!isShown(field, fields, body, whole)) return [];
    const value = body[field.name];
    const isContainer = field.node.kind === 'object' || field.node.kind === 'branches';
    if (isContainer && (value !== undefined || field.isRequired))
      return missingFields(fieldsIn(field, whole), objectIn(value), whole, `${path}${field.name}.`);
    return field.isRequired && (value === undefined || value === null) ? [`${path}${field.name}`] : [];
  });
}

export type Complaints = Record<string, string>;

/**
 * What the API says of each field, by its path. Some families answer with `details`; the others name the field at the beginning of each part of the
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
  const told = Object.entries(error.details);
  for (const [path, texts] of told) add(path, `${path} ${texts.join(', ')}.`);
  if (told.length > 0) return found;
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

/** Such as `Destinations` for destinationIds and `Timeout (ms)` for timeoutMs. */
export function labelOf(name: string): string {
  const words = name
    .replace(/Ids$/, 's')
    .replace(/Id$/, '')
    .replace(/([A-Z][a-z]|[A-Z]+(?![a-z]))/g, ' $1')
    .replace(/ Ms$/, ' (ms)')
    .trim()
    .toLowerCase()
    .replace(/\b(?:url|ip|tls|id)\b/g, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}
