import { z } from 'zod';
import type { FormField, FormNode, ReferenceFamily } from '../../src/web/api/form-schema.ts';
import { formHelp } from './form-help.ts';

const schema = z.looseObject({});
type Schema = z.infer<typeof schema>;
const openApi = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
  components: z.object({ schemas: z.record(z.string(), schema) }),
});
const operation = z.object({ requestBody: z.object({ content: z.object({ 'application/json': z.object({ schema }) }) }) });

/** Families of the API that have a form, each with the fields that it shows first. */
const formFamilies = {
  sources: ['name', 'provider', 'signingSecret', 'verification', 'description', 'enabled'],
  destinations: ['name', 'type', 'url', 'config', 'authType', 'authConfig', 'headers', 'description', 'enabled'],
  routes: ['name', 'sourceId', 'destinationIds', 'filterId', 'transformId', 'description', 'enabled'],
  cron: ['name', 'cronExpression', 'timezone', 'url', 'method', 'payload', 'description', 'isActive'],
  'notification-channels': ['name', 'type', 'config', 'enabled'],
  'webhook-applications': ['name', 'externalId', 'isDisabled'],
  'webhook-endpoints': ['applicationId', 'url', 'description', 'headers', 'isDisabled'],
  'webhook-subscriptions': ['endpointId', 'eventTypeId', 'filterExpression', 'labelFilters', 'transformId', 'isEnabled'],
  'event-types': ['name', 'displayName', 'description', 'category', 'isEnabled'],
} as const;

export type FormFamily = keyof typeof formFamilies;
export const formNames = Object.keys(formFamilies).filter((name): name is FormFamily => name in formFamilies);

const references: Record<string, ReferenceFamily> = {
  sourceId: 'sources',
  destinationIds: 'destinations',
  failoverDestinationIds: 'destinations',
  filterId: 'filters',
  transformId: 'transforms',
  schemaId: 'schemas',
  notificationChannelIds: 'notification-channels',
  applicationId: 'webhook-applications',
  endpointId: 'webhook-endpoints',
  eventTypeId: 'event-types',
};
const secrets = new Set(
  'signingSecret verifyToken password token key headerValue clientCertificate clientKey secretAccessKey serviceAccountKey accountKey routingKey webhookUrl secret'.split(
    ' ',
  ),
);
/** The same as another field of the form. */
const synonyms = new Set(['destinationId']);

const http = { field: 'type', values: ['http'] };
const warehouse = { field: 'type', values: ['s3', 'r2', 'gcs', 'azure_blob'] };
const ofType = (...values: string[]): FormField['when'] => ({ field: 'type', values });
const ofAuth = (...values: string[]): FormField['when'] => ({ field: 'authType', values });
/** Fields that apply with some values of another one; the descriptions of the document explain this in words. */
const conditions: Record<string, FormField['when']> = {
  ...Object.fromEntries(
    'url method headers headerTemplates authType timeoutMs tls useStaticIp forwardQuery forwardHeaders payloadForm ordered signingSecret signatureScheme'
      .split(' ')
      .map((name) => [`destinations.${name}`, http]),
  ),
  'destinations.config': warehouse,
  'destinations.fieldMapping': warehouse,
  'destinations.authConfig': ofAuth('basic', 'bearer', 'api_key', 'custom_header'),
  'destinations.authConfig.username': ofAuth('basic'),
  'destinations.authConfig.password': ofAuth('basic'),
  'destinations.authConfig.token': ofAuth('bearer'),
  'destinations.authConfig.headerName': ofAuth('api_key', 'custom_header'),
  'destinations.authConfig.key': ofAuth('api_key'),
  'destinations.authConfig.headerValue': ofAuth('custom_header'),
  'destinations.config.bucket': ofType('s3', 'r2', 'gcs'),
  'destinations.config.region': ofType('s3'),
  'destinations.config.accessKeyId': ofType('s3', 'r2'),
  'destinations.config.secretAccessKey': ofType('s3', 'r2'),
  'destinations.config.projectId': ofType('gcs'),
  'destinations.config.serviceAccountKey': ofType('gcs'),
  'destinations.config.accountName': ofType('azure_blob'),
  'destinations.config.containerName': ofType('azure_blob'),
  'destinations.config.accountKey': ofType('azure_blob'),
  'destinations.throttle.rateLimit': { field: 'mode', values: ['rate'] },
  'destinations.throttle.rateUnit': { field: 'mode', values: ['rate'] },
  'destinations.throttle.strict': { field: 'mode', values: ['rate'] },
  'destinations.throttle.maxConcurrency': { field: 'mode', values: ['concurrency'] },
  'sources.verification': { field: 'provider', values: ['custom'] },
  'sources.verifyToken': { field: 'handshake', values: ['hub_challenge'] },
};

/** Objects that a change replaces; it merges the others. */
const replaced = new Set(['sources.verification', 'routes.expectedResponse']);
/** Lists without which all count. */
const allWithout = new Set(['destinations.forwardHeaders', 'routes.notificationChannelIds']);

const longText = 16_000;

/** The fields of the body of `POST /<family>`, merged with those of `PATCH /<family>/{id}`. Throws an Error for a body that is no object. */
export function formFields(document: unknown, family: FormFamily): FormField[] {
  const { paths, components } = openApi.parse(document);
  const first: readonly string[] = formFamilies[family];

  const resolved = (each: Schema): Schema => {
    const { $ref, ...own } = each;
    if (typeof $ref !== 'string') return each;
    const found = components.schemas[$ref.slice($ref.lastIndexOf('/') + 1)];
    if (found === undefined) throw new Error(`the OpenAPI document has no ${$ref}`);
    return { ...resolved(found), ...own };
  };
  const choicesOf = (each: Schema): Schema[] =>
    z
      .array(schema)
      .catch([])
      .parse(each['anyOf'] ?? each['oneOf'])
      .map(resolved)
      .flatMap((choice) => ('anyOf' in choice ? choicesOf(choice) : [choice]));
  const bodyOf = (method: string, path: string): Schema =>
    resolved(operation.parse(paths[path]?.[method]).requestBody.content['application/json'].schema);

  const fieldsOf = (each: Schema, path: string, changed: Schema | null = null): FormField[] => {
    const required = z.array(z.string()).catch([]).parse(each['required']);
    const changes = schema.catch({}).parse(changed?.['properties']);
    return Object.entries(z.record(z.string(), schema).parse(each['properties'])).flatMap(([name, raw]) => {
      const field = fieldOf(name, resolved(raw), `${path}.${name}`);
      if (field === null) return [];
      const change = name in changes ? resolved(schema.parse(changes[name])) : {};
      const isFixed = `${change['description'] ?? ''}`.includes('Cannot be changed');
      return [{ ...field, ...(required.includes(name) && { isRequired: true as const }), ...(isFixed && { isFixed: true as const }) }];
    });
  };

  const fieldOf = (name: string, each: Schema, path: string): FormField | null => {
    const choices = choicesOf(each);
    const own = choices.filter(({ type }) => type !== 'null');
    const types = z.array(z.string()).catch([]).parse([each['type']].flat());
    const isFixedValue = 'const' in each || each['maxItems'] === 0 || own.some((one) => 'const' in one);
    const isNothing = isFixedValue || (types.length === 1 && types[0] === 'null');
    if (each['readOnly'] === true || each['deprecated'] === true || isNothing || synonyms.has(name)) return null;
    const given = z.union([z.string(), z.number(), z.boolean(), z.array(z.union([z.string(), z.number()]))]).safeParse(each['default']);
    const isNullable = types.includes('null') || choices.length > own.length;
    return {
      name,
      help: `${each['description'] ?? ''}`,
      node: nodeOf(name, each, own, path),
      ...(isNullable && { isNullable: true }),
      ...(allWithout.has(path) && { isAllWithout: true as const }),
      ...(replaced.has(path) && { isReplaced: true }),
      ...(first.includes(path.slice(family.length + 1)) && { isMain: true }),
      ...(given.success && { default: given.data }),
      ...(conditions[path] !== undefined && { when: conditions[path] }),
    };
  };

  const branchesOf = (own: readonly Schema[], path: string): Record<string, FormField[]> =>
    Object.fromEntries(
      own.map((one) => {
        const [, value = ''] = /^With type (\w+)\.$/.exec(`${one['description']}`) ?? [];
        return [value, fieldsOf(one, path)];
      }),
    );

  const nodeOf = (name: string, each: Schema, own: readonly Schema[], path: string): FormNode => {
    const isUnion = own.length > 1 && own.every(({ properties }) => properties !== undefined);
    if (isUnion) return { kind: 'branches', on: 'type', branches: branchesOf(own, path) };
    const [one = each] = own;
    const values = z.array(z.string()).safeParse(one['enum']);
    if (values.success) return { kind: 'choice', values: values.data };
    const to = references[name];
    switch ([one['type']].flat()[0]) {
      case 'string': {
        if (to !== undefined) return { kind: 'reference', to };
        const isLong = Number(one['maxLength'] ?? 0) > longText;
        return { kind: 'text', ...(secrets.has(name) && { isSecret: true }), ...(isLong && { isLong: true }) };
      }
      case 'integer':
      case 'number':
        return { kind: 'number' };
      case 'boolean':
        return { kind: 'boolean' };
      case 'object':
        if (one['properties'] !== undefined) return { kind: 'object', fields: fieldsOf(one, path) };
        if ('propertyNames' in one && hasTexts(one['additionalProperties'])) return { kind: 'map' };
        return { kind: 'json', isObject: true };
      case 'array':
        return listOf(to, resolved(schema.parse(one['items'])), path);
      default:
        return { kind: 'json' };
    }
  };

  /** The values of a map are texts, and nothing else. */
  const hasTexts = (values: unknown): boolean => {
    const value = resolved(schema.catch({}).parse(values));
    const choices = choicesOf(value);
    return (choices.length > 0 ? choices : [value]).every(({ type }) => type === 'string');
  };

  const listOf = (to: ReferenceFamily | undefined, item: Schema, path: string): FormNode => {
    if (to !== undefined) return { kind: 'references', to };
    const values = z.array(z.string()).safeParse(item['enum']);
    if (values.success) return { kind: 'choices', values: values.data };
    if (item['properties'] !== undefined) return { kind: 'objects', fields: fieldsOf(item, path) };
    switch (item['type']) {
      case 'string':
        return { kind: 'list' };
      case 'integer':
      case 'number':
        return { kind: 'numbers' };
      default:
        return { kind: choicesOf(item).some(({ type }) => type === 'integer') ? 'numbers' : 'json' };
    }
  };

  const fields = fieldsOf(bodyOf('post', `/${family}`), family, bodyOf('patch', `/${family}/{id}`));
  const place = ({ name }: FormField): number => (first.includes(name) ? first.indexOf(name) : first.length);
  return inFormWords(
    fields.sort((a, b) => place(a) - place(b)),
    new Set(namesIn(fields)),
  );
}

/** Fields that a field is made of. */
function partsOf({ node }: FormField): FormField[] {
  if (node.kind === 'branches') return Object.values(node.branches).flat();
  return node.kind === 'object' || node.kind === 'objects' ? node.fields : [];
}

function namesIn(fields: readonly FormField[]): string[] {
  return fields.flatMap((field) => [field.name, ...namesIn(partsOf(field))]);
}

/** The fields with descriptions as a form has them. */
function inFormWords(fields: readonly FormField[], names: ReadonlySet<string>): FormField[] {
  return fields.map((field) => ({ ...field, help: formHelp(field.help, names), node: nodeInFormWords(field.node, names) }));
}

function nodeInFormWords(node: FormNode, names: ReadonlySet<string>): FormNode {
  if (node.kind === 'object' || node.kind === 'objects') return { ...node, fields: inFormWords(node.fields, names) };
  if (node.kind !== 'branches') return node;
  const branches = Object.entries(node.branches).map(([name, fields]) => [name, inFormWords(fields, names)]);
  return { ...node, branches: Object.fromEntries(branches) };
}
