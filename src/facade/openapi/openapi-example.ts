import { isRecord } from '../../resources/field-tree.ts';
import { kinds } from '../../resources/kinds.ts';

type Json = Record<string, unknown>;

const idTail = 'mzxw6ytboi4dsnrrgq3tkojqge';
const messageIdTail = '00m2k3x7q4uabcdefghijklmnop';
const time = '2026-01-31T12:00:00.000Z';

/** The ids of resources below a path, such as `dst_…` of `destinations`. */
const ids: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.values(kinds).map(({ plural, idPrefix }) => [plural, idPrefix + idTail])),
  events: `evt_${messageIdTail}`,
  deliveries: `msg_${messageIdTail}`,
  deliverys: `msg_${messageIdTail}`,
  messages: `msg_${messageIdTail}`,
  webhookapplications: `app_${idTail}`,
  webhookendpoints: `ep_${idTail}`,
  webhooksubscriptions: `sub_${idTail}`,
};

const texts: Readonly<Record<string, string>> = {
  name: 'Orders',
  slug: 'orders',
  description: 'Orders of the shop.',
  source: 'github',
  sourceSlug: 'github',
  destinationSlug: 'orders',
  destinationSlugs: 'orders',
  filterSlug: 'large-orders',
  transformSlug: 'order-to-message',
  schemaSlug: 'order',
  organizationSlug: 'acme',
  method: 'POST',
  contentType: 'application/json',
  prefix: 'ph_mzxw6y',
  key: 'ph_mzxw6ytboi4dsnrrgq3tkojqgemzxw6ytboi4dsnrrgq3tkojqge',
  nextCursor: 'eyJhZnRlciI6Im1zZ18wIn0',
  message: 'Done.',
  endpoint: 'https://account.r2.example.com',
  errorType: 'http_error',
  errorMessage: 'The receiver answered 500.',
  responseBody: 'ok',
  status: 'created',
};
const numbers: Readonly<Record<string, number>> = {
  page: 1,
  pageSize: 20,
  total: 1,
  size: 512,
  attempts: 3,
  durationMs: 87,
  latency: 87,
  statusCode: 200,
  responseStatus: 500,
  timeoutMs: 30_000,
};

export interface ExampleContext {
  /** The schemas that references point at. */
  schemas: Json;
  /** Fields of a record as another example shows them. */
  known: Json;
  /** The path segment that an `id` belongs to. */
  collection: string;
}

/** An example of what a schema describes, from the examples, defaults and types of its fields. */
export function exampleOf(given: unknown, context: ExampleContext, name = ''): unknown {
  const node = resolved(given, context.schemas);
  if (Array.isArray(node['examples'])) return node['examples'][0];
  if ('const' in node) return node['const'];
  if (Object.hasOwn(context.known, name) && fits(node, context.known[name], context.schemas)) return context.known[name];
  if ('default' in node) return node['default'];
  if (Array.isArray(node['enum'])) return node['enum'][0];
  const choices = node['anyOf'] ?? node['oneOf'];
  if (Array.isArray(choices)) return choice(choices, context, name);
  switch (Array.isArray(node['type']) ? node['type'][0] : node['type']) {
    case 'string':
      return textOf(node, name, context);
    case 'integer':
    case 'number':
      return numbers[name] ?? (typeof node['minimum'] === 'number' ? node['minimum'] : 0);
    case 'boolean':
      return true;
    case 'array':
      return [exampleOf(node['items'], within(context, name), name.replace(/s$/, ''))];
    case 'object':
      return objectOf(node, within(context, name));
    default:
      return null;
  }
}

/** A nullable object is shown as null: the schema does not define which of its fields belong together. */
function choice(choices: readonly unknown[], context: ExampleContext, name: string): unknown {
  const isObject = choices.some((each) => resolved(each, context.schemas)['type'] === 'object');
  const isNullable = choices.some((each) => resolved(each, context.schemas)['type'] === 'null');
  return isObject && isNullable ? null : exampleOf(choices[0], context, name);
}

/** Fields that examples do without, because they are long and may be absent. */
const leftOut = new Set(['detail']);

/** Undefined members are left out. */
function objectOf(node: Json, context: ExampleContext): Json {
  const isAbsent = (name: string): boolean =>
    leftOut.has(name) || (Object.hasOwn(context.known, name) && context.known[name] === undefined);
  const properties = Object.entries(isRecord(node['properties']) ? node['properties'] : {}).filter(([name]) => !isAbsent(name));
  return Object.fromEntries(properties.map(([name, property]) => [name, exampleOf(property, context, name)]));
}

/** A nested record differs from the one around it, except in the lists of a family. */
function within(context: ExampleContext, name: string): ExampleContext {
  if (name === '' || name === 'data' || name === 'datum') return context;
  const value = context.known[name];
  return { ...context, known: isRecord(value) ? value : {}, collection: name.endsWith('s') ? name : `${name.toLowerCase()}s` };
}

function resolved(schema: unknown, schemas: Json): Json {
  if (!isRecord(schema)) return {};
  const reference = schema['$ref'];
  return typeof reference === 'string' ? resolved(schemas[reference.replace('#/components/schemas/', '')], schemas) : schema;
}

/** Whether a value of another example has the type of the schema, and a list the fields of its items; no deeper. */
function fits(node: Json, value: unknown, schemas: Json): boolean {
  if (Array.isArray(value) && isRecord(value[0])) {
    const { required } = resolved(node['items'], schemas);
    const fields = Object.keys(value[0]);
    if (Array.isArray(required) && !required.every((field) => fields.includes(String(field)))) return false;
  }
  if (Array.isArray(node['enum'])) return node['enum'].includes(value);
  const choices = Array.isArray(node['anyOf']) ? node['anyOf'].map((each) => (isRecord(each) ? each['type'] : undefined)) : [];
  return [node['type'], ...choices].flat().some((type) => isOfType(type, value));
}

function isOfType(type: unknown, value: unknown): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isRecord(value);
    case 'null':
      return value === null;
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function textOf(node: Json, name: string, context: ExampleContext): string {
  if (node['format'] === 'date-time' || /At$/.test(name)) return time;
  if (node['format'] === 'uri' || /url$/i.test(name)) return 'https://shop.example.com/webhooks';
  if (name === 'slug' && typeof context.known['name'] === 'string') return slugLike(context.known['name']);
  const owner = name === 'id' ? context.collection : /^(?:.*?)([A-Za-z][a-z]+)Id$/.exec(name)?.[1];
  if (owner === undefined) return texts[name] ?? 'text';
  return idOf(owner.replaceAll('-', '').toLowerCase()) ?? `${owner}-1`;
}

/** The id of a kind by its plural, its singular, or the short word that paths use for it, such as `schemas` and `cron`. */
function idOf(owner: string): string | undefined {
  const plural =
    Object.keys(ids).find((each) => each === owner || each === `${owner}s`) ?? Object.keys(ids).find((each) => each.includes(owner));
  return plural === undefined ? undefined : ids[plural];
}

function slugLike(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
}
