import fc from 'fast-check';
import { isRecord } from '../../src/resources/field-tree.ts';
import { list, members, type Schema } from './described-operations.ts';
import type { DocumentSchemas } from './document-schemas.ts';

export interface ValueSources {
  schemas: DocumentSchemas;
  /** Values worth trying for a field of this name, such as ids of what exists. */
  known(field: string): readonly string[];
}

/** Schema of a body whose choices determine its required fields. */
function withRequired({ anyOf: _, oneOf: __, ...schema }: Schema, choice: Schema): Schema {
  return { ...schema, required: [...list(schema['required']), ...list(choice['required'])] };
}

/** Values that the schema accepts: most of them, keywords that only a validator can check (`not`, `allOf`) aside. */
export function valuesOf(given: unknown, sources: ValueSources, field = ''): fc.Arbitrary<unknown> {
  const schema = sources.schemas.resolved(members(given));
  if ('const' in schema) return fc.constant(schema['const']);
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...schema['enum']);
  const choices = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(choices)) {
    const isBody = field === '' && 'properties' in schema;
    return fc.oneof(...choices.map((choice) => valuesOf(isBody ? withRequired(schema, members(choice)) : choice, sources, field)));
  }
  const type = schema['type'];
  if (Array.isArray(type)) return fc.oneof(...type.map((each) => valuesOf({ ...schema, type: each }, sources, field)));
  switch (type) {
    case 'string':
      return strings(schema, sources.known(field));
    case 'integer':
      return integers(schema);
    case 'number':
      return fc.oneof(integers(schema), fc.double({ min: lowest(schema), max: highest(schema), noNaN: true, noDefaultInfinity: true }));
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return arrays(schema, sources, field);
    case 'object':
      return objects(schema, sources);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

/** Bodies that the schema takes, some of them an example with another field changed or added. */
export function bodiesOf(schema: Schema, examples: readonly unknown[], sources: ValueSources): fc.Arbitrary<unknown> {
  const values = valuesOf(schema, sources);
  const whole = examples.filter(isRecord);
  const properties = Object.entries(members(sources.schemas.resolved(schema)['properties']));
  if (whole.length === 0 || properties.length === 0) return values;
  const fields = properties.map(([name, property]) => [name, valuesOf(property, sources, name)] as const);
  return fc.oneof(values, sparse(examplesOfWhatIsThere(whole, sources), fields));
}

/** The examples, half of them with ids of what is there. */
function examplesOfWhatIsThere(examples: readonly Record<string, unknown>[], sources: ValueSources): fc.Arbitrary<Record<string, unknown>> {
  const example = fc.constantFrom(...examples);
  const present = fc.tuple(example, fc.nat()).map(([body, n]) =>
    Object.fromEntries(
      Object.entries(body).map(([field, value]) => {
        const known = /Ids?$/.test(field) ? sources.known(field) : [];
        const id = known[n % known.length];
        if (id === undefined) return [field, value];
        return [field, Array.isArray(value) ? [id] : id];
      }),
    ),
  );
  return fc.oneof(example, present);
}

function strings(schema: Schema, known: readonly string[]): fc.Arbitrary<string> {
  const minLength = count(schema['minLength'], 0);
  const maxLength = count(schema['maxLength'], 10_000);
  const some = known.length === 0 ? [] : [{ weight: 8, arbitrary: fc.constantFrom(...known) }];
  const formatted = typeof schema['format'] === 'string' ? formats[schema['format']] : undefined;
  if (formatted !== undefined) return fc.oneof(...some, { weight: 2, arbitrary: formatted });
  if (typeof schema['pattern'] === 'string')
    return fc.oneof(...some, { weight: 2, arbitrary: matching(schema['pattern'], minLength, maxLength) });
  const shortish = Math.min(maxLength, minLength + 24);
  return fc.oneof(
    ...some,
    { weight: 6, arbitrary: anyText(minLength, shortish) },
    { weight: 1, arbitrary: fc.constant('x'.repeat(maxLength)) },
  );
}

const textsOf = new Map<string, fc.Arbitrary<string>>();

/** As with patterns. */
function anyText(minLength: number, maxLength: number): fc.Arbitrary<string> {
  const key = `${minLength} ${maxLength}`;
  const known =
    textsOf.get(key) ??
    fc.oneof(
      { weight: 2, arbitrary: fc.string({ minLength, maxLength }) },
      { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength, maxLength }) },
    );
  textsOf.set(key, known);
  return known;
}

const formats: Readonly<Record<string, fc.Arbitrary<string>>> = {
  uri: fc.webUrl({ withQueryParameters: true }),
  'date-time': fc.date({ noInvalidDate: true, min: new Date(0), max: new Date('2100-01-01') }).map((date) => date.toISOString()),
  cidr: fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })).map(([address, bits]) => `${address}/${bits}`),
  'header-map': fc.constantFrom('{}', '{"X-Team":"shop"}'),
  'email-list': fc
    .array(fc.constantFrom('team@example.com', 'o.n.call+1@mail.example'), { minLength: 1, maxLength: 3 })
    .map((all) => all.join(', ')),
};

const matchingOf = new Map<string, fc.Arbitrary<string>>();

/** fast-check takes long to make one, and the same patterns are in many bodies. */
function matching(pattern: string, minLength: number, maxLength: number): fc.Arbitrary<string> {
  const key = JSON.stringify([pattern, minLength, maxLength]);
  const known = matchingOf.get(key) ?? newMatching(pattern, minLength, maxLength);
  matchingOf.set(key, known);
  return known;
}

function newMatching(pattern: string, minLength: number, maxLength: number): fc.Arbitrary<string> {
  const fits = (text: string): boolean => [...text].length >= minLength && [...text].length <= maxLength;
  try {
    return fc
      .stringMatching(new RegExp(pattern, 'u'), { size: 'small' })
      .map((text) => (fits(text) ? text : [...text].slice(0, maxLength).join('')));
  } catch {
    // Patterns that fast-check cannot generate (assertions, classes of Unicode) have examples in the document.
    return fc.string({ minLength: Math.max(1, minLength), maxLength: Math.min(maxLength, 24) });
  }
}

function integers(schema: Schema): fc.Arbitrary<number> {
  const [min, max] = [Math.ceil(lowest(schema)), Math.floor(highest(schema))];
  return fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max));
}

function arrays(schema: Schema, sources: ValueSources, field: string): fc.Arbitrary<unknown[]> {
  const minLength = count(schema['minItems'], 0);
  const maxLength = Math.min(count(schema['maxItems'], 4), minLength + 3);
  return fc.array(valuesOf(schema['items'], sources, field), { minLength, maxLength });
}

function objects(schema: Schema, sources: ValueSources): fc.Arbitrary<object> {
  const properties = Object.entries(members(schema['properties'])).map(
    ([name, property]) => [name, valuesOf(property, sources, name)] as const,
  );
  const required = list(schema['required']).map(String);
  const needed = fc.record(Object.fromEntries(properties.filter(([name]) => required.includes(name))));
  const whole = fc.record(Object.fromEntries(properties), { requiredKeys: required });
  if (properties.length > 0)
    return fc.oneof(
      needed,
      whole,
      sparse(
        needed,
        properties.filter(([name]) => !required.includes(name)),
      ),
    );
  if (!isRecord(schema['additionalProperties'])) return fc.constant({});
  const keys = valuesOf({ type: 'string', maxLength: 40, ...members(schema['propertyNames']) }, sources).map(String);
  return fc.dictionary(keys, valuesOf(schema['additionalProperties'], sources), { maxKeys: 3, noNullPrototype: true });
}

/** What is needed, and one or two fields more: combinations of many optional fields seldom fit together. */
function sparse(needed: fc.Arbitrary<object>, optional: readonly (readonly [string, fc.Arbitrary<unknown>])[]): fc.Arbitrary<object> {
  if (optional.length === 0) return needed;
  const one = fc.constantFrom(...optional).chain(([name, values]) => values.map((value) => ({ [name]: value })));
  return fc.tuple(needed, one, fc.option(one)).map(([base, first, second]) => ({ ...base, ...first, ...second }));
}

function lowest(schema: Schema): number {
  if (typeof schema['exclusiveMinimum'] === 'number') return schema['exclusiveMinimum'] + 1;
  return Math.max(count(schema['minimum'], -1e9), Number.MIN_SAFE_INTEGER);
}

function highest(schema: Schema): number {
  if (typeof schema['exclusiveMaximum'] === 'number') return schema['exclusiveMaximum'] - 1;
  return Math.min(count(schema['maximum'], 1e9), Number.MAX_SAFE_INTEGER);
}

function count(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}
