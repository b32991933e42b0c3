import { z } from 'zod';

const schema = z.looseObject({});
type Schema = z.infer<typeof schema>;
const parameter = z.object({ name: z.string(), in: z.string(), required: z.boolean().optional(), schema });
const reference = z.object({ $ref: z.string() });
const content = z.object({ content: z.record(z.string(), z.object({ schema: schema.optional() })).optional() });
const operation = z.object({
  parameters: z.array(z.union([reference, parameter])).default([]),
  requestBody: content.optional(),
  responses: z.record(z.string(), z.looseObject({})),
});
const openApi = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.unknown())),
  components: z.object({ schemas: z.record(z.string(), schema), parameters: z.record(z.string(), parameter) }),
});

/**
 * TypeScript types of the operations, each named `METHOD /path`, and of what they refer to. Throws an Error for an operation that the document does
 * not have.
 */
export function operationTypes(document: unknown, names: readonly string[]): string {
  const { paths, components } = openApi.parse(document);
  const used = new Set<string>();

  const typeOf = (each: Schema): string => {
    const { $ref, anyOf, oneOf, allOf, type, properties, items } = each;
    if (typeof $ref === 'string') return referred($ref);
    if ('const' in each) return JSON.stringify(each['const']);
    if (Array.isArray(each['enum'])) return each['enum'].map((value) => JSON.stringify(value)).join(' | ');
    const choices = Array.isArray(anyOf) ? anyOf : oneOf;
    if (Array.isArray(choices)) return union(choices.map((choice) => typeOf(schema.parse(choice))));
    if (Array.isArray(type)) return union(type.map((one) => typeOf(one === 'null' ? { type: one } : { ...each, type: one })));
    const parts = Array.isArray(allOf) ? allOf.map((part) => typeOf(schema.parse(part))) : [];
    if (properties !== undefined || (type === 'object' && parts.length === 0)) parts.push(objectOf(each));
    if (parts.length > 0) return parts.length === 1 ? parts.join('') : parts.map((part) => `(${part})`).join(' & ');
    if (type === 'array') return `Array<${items === undefined ? 'unknown' : typeOf(schema.parse(items))}>`;
    return plain.get(String(type)) ?? 'unknown';
  };

  const referred = (pointer: string): string => {
    const name = pointer.slice(pointer.lastIndexOf('/') + 1);
    used.add(name);
    return name;
  };

  const objectOf = ({ properties, required, additionalProperties }: Schema): string => {
    const needed = new Set(Array.isArray(required) ? required : []);
    const members = Object.entries(schema.parse(properties ?? {})).map(
      ([name, member]) => `${key(name)}${needed.has(name) ? '' : '?'}: ${typeOf(schema.parse(member))}`,
    );
    if (members.length > 0) return `{ ${members.join('; ')} }`;
    const values = schema.safeParse(additionalProperties);
    return `Record<string, ${values.success ? typeOf(values.data) : 'unknown'}>`;
  };

  const parametersOf = (all: z.infer<typeof operation>['parameters'], place: string): string => {
    const found = all
      .map((each) => ('$ref' in each ? components.parameters[each.$ref.slice(each.$ref.lastIndexOf('/') + 1)] : each))
      .filter((each) => each !== undefined && each.in === place);
    const members = found.flatMap((each) =>
      each === undefined ? [] : [`${key(each.name)}${each.required === true ? '' : '?'}: ${typeOf(each.schema)}`],
    );
    return members.length === 0 ? 'Record<string, never>' : `{ ${members.join('; ')} }`;
  };

  const jsonOf = (answer: unknown): string | null => {
    const json = content.safeParse(answer).data?.content?.['application/json']?.schema;
    return json === undefined ? null : typeOf(json);
  };

  const describe = (name: string): string => {
    const [method = '', path = ''] = name.split(' ');
    const item = paths[path];
    const found = operation.safeParse(item?.[method.toLowerCase()]);
    if (!found.success) throw new Error(`the OpenAPI document has no operation ${name}`);
    const { requestBody, responses } = found.data;
    const parameters = [...z.array(z.union([reference, parameter])).parse(item?.['parameters'] ?? []), ...found.data.parameters];
    const answers = Object.entries(responses).flatMap(([status, answer]) => (status.startsWith('2') ? [jsonOf(answer) ?? 'null'] : []));
    const fields = [
      `path: ${parametersOf(parameters, 'path')}`,
      `query: ${parametersOf(parameters, 'query')}`,
      `body: ${jsonOf(requestBody) ?? 'undefined'}`,
      `answer: ${union(answers)}`,
    ];
    return `  '${name}': {\n${fields.map((field) => `    ${field};\n`).join('')}  };\n`;
  };

  const operations = names.map(describe).join('');
  const types = new Map<string, string>();
  // What is referred to may refer to more.
  for (const name of used) types.set(name, `export type ${name} = ${typeOf(schema.parse(components.schemas[name]))};\n`);
  const sorted = [...types].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text);
  return `// Made by hack/gen-web-api.ts from the OpenAPI document. Do not edit.\n\nexport interface Operations {\n${operations}}\n\n${sorted.join('\n')}`;
}

const plain = new Map([
  ['string', 'string'],
  ['number', 'number'],
  ['integer', 'number'],
  ['boolean', 'boolean'],
  ['null', 'null'],
]);

function union(types: readonly string[]): string {
  return [...new Set(types)].join(' | ') || 'unknown';
}

function key(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : `'${name}'`;
}
