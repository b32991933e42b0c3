import { z } from 'zod';
import { isRecord } from '../../resources/field-tree.ts';

type Json = Record<string, unknown>;
type Section = 'schemas' | 'responses' | 'parameters' | 'examples';

/** The shared parts of the document, each under a name of its own: what occurs twice refers to the same part. */
export class Components {
  readonly schemas: Json = {};
  readonly responses: Json = {};
  readonly parameters: Json = {};
  readonly examples: Json = {};

  /** A reference to the part, which is added; the name may be taken by an equal part alone. */
  refer(section: Section, name: string, part: Json): { $ref: string } {
    const taken = this[section][name];
    if (isRecord(taken)) {
      const { examples: _, ...described } = taken;
      if (JSON.stringify(section === 'schemas' ? described : taken) === JSON.stringify(part))
        return { $ref: `#/components/${section}/${name}` };
      throw new Error(`two different ${section} of the OpenAPI document have the name ${name}`);
    }
    this[section][name] = part;
    return { $ref: `#/components/${section}/${name}` };
  }

  /** JSON Schema of a response. Schemas with an id are components; `name` is for one that has none. */
  answered(schema: z.ZodType, name: string): Json {
    const whole = this.#written(schema, 'input');
    return '$ref' in whole ? whole : this.refer('schemas', envelopeName(whole) ?? name, whole);
  }

  /** JSON Schema of what is sent, under this name; `change` adapts it for the document. */
  sent(schema: z.ZodType, name: string, change: (body: Json) => Json): Json {
    return this.refer('schemas', name, change(this.#written(schema, 'input')));
  }

  /** The same for what changes a record: what is not sent stays, so that no field has a default. Parts that had some get a name of their own. */
  sentToChange(schema: z.ZodType, name: string, change: (body: Json) => Json): Json {
    const parts: Record<string, Json> = {};
    const body = tidied(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), parts);
    const renamed = new Set<string>();
    for (let before = -1; before < renamed.size; ) {
      before = renamed.size;
      for (const [id, part] of Object.entries(parts)) if (contains(part, renamed)) renamed.add(id);
    }
    for (const [id, part] of Object.entries(parts))
      this.refer('schemas', renamed.has(id) ? changeOf(id) : id, members(withoutDefaults(part, renamed)));
    return this.refer('schemas', name, change(members(withoutDefaults(body, renamed))));
  }

  /** Lets a record that has all properties of others, and more, refer to those. */
  shareProperties(): void {
    const records = Object.entries(this.schemas).flatMap(([name, schema]) => {
      const { properties, required, additionalProperties } = members(schema);
      const isOpen = additionalProperties === undefined && isRecord(properties) && Array.isArray(required);
      return isOpen ? [{ name, schema: members(schema), properties, required }] : [];
    });
    for (const { name, schema, properties, required } of records) {
      const bases = records.filter((other) => {
        const own = Object.entries(other.properties);
        return (
          own.length >= fewestShared &&
          own.length < Object.keys(properties).length &&
          own.every(([field, property]) => JSON.stringify(property) === JSON.stringify(properties[field])) &&
          other.required.every((field) => required.includes(field))
        );
      });
      const chosen: typeof bases = [];
      for (const base of bases.sort((one, other) => Object.keys(other.properties).length - Object.keys(one.properties).length))
        if (!chosen.some((other) => Object.keys(base.properties).some((field) => field in other.properties))) chosen.push(base);
      if (chosen.length === 0) continue;
      const more = Object.fromEntries(Object.entries(properties).filter(([field]) => !chosen.some((base) => field in base.properties)));
      const { type, properties: _, required: __, ...rest } = schema;
      const own = { type, properties: more, required: required.filter((field) => field in more) };
      this.schemas[name] = { ...rest, allOf: [...chosen.map((base) => ({ $ref: reference + base.name })), own] };
    }
  }

  /** Puts an example of a response where its records are described, once for each; false where another one is there already. */
  showExample(schema: Json, example: unknown): boolean {
    const component = this.#component(schema);
    if (component === null) return false;
    if ('examples' in component) return JSON.stringify(members(component['examples'])[0]) === JSON.stringify(example);
    const properties = Object.entries(members(component['properties']));
    const parts = properties.map(([name, property]) => [name, this.#partIn(members(property))] as const);
    if (parts.length === 0 || parts.some(([, part]) => part === null)) {
      component['examples'] = [example];
      return true;
    }
    return parts.every(([name, part]) => {
      const value = members(example)[name];
      return this.showExample(part ?? {}, Array.isArray(value) ? value[0] : value);
    });
  }

  #component({ $ref }: Json): Json | null {
    const part = typeof $ref === 'string' ? this.schemas[$ref.slice(reference.length)] : undefined;
    return isRecord(part) ? part : null;
  }

  /** Reference of a property, or of each item of it. */
  #partIn(property: Json): Json | null {
    const { items } = property;
    return typeof property['$ref'] === 'string' ? property : isRecord(items) && typeof items['$ref'] === 'string' ? items : null;
  }

  /** An inline schema, such as that of a query. */
  inline(schema: z.ZodType): Json {
    return this.#written(schema, 'output');
  }

  #written(schema: z.ZodType, io: 'input' | 'output'): Json {
    const parts: Record<string, Json> = {};
    const whole = tidied(z.toJSONSchema(schema, { io, unrepresentable: 'any' }), parts);
    for (const [id, part] of Object.entries(parts)) this.refer('schemas', id, part);
    return whole;
  }
}

/** `{data}` of one record has the same name in all responses. */
function envelopeName({ properties }: Json): string | undefined {
  const { data, ...others } = members(properties);
  const { $ref: record } = members(data);
  return typeof record === 'string' && Object.keys(others).length === 0 ? `${record.slice(reference.length)}Envelope` : undefined;
}

/** Fewer properties are alike by chance. */
const fewestShared = 5;
const reference = '#/components/schemas/';
const changeOf = (id: string): string => (id.endsWith('Change') ? id : `${id}Change`);

/** Whether it contains a default, or a reference to one of these parts. */
function contains(value: unknown, parts: ReadonlySet<string>): boolean {
  if (Array.isArray(value)) return value.some((each) => contains(each, parts));
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, each]) => {
    if (name === 'properties') return contains(Object.values(members(each)), parts);
    return name === '$ref' && typeof each === 'string'
      ? parts.has(each.slice(reference.length))
      : name === 'default' || contains(each, parts);
  });
}

function withoutDefaults(value: unknown, renamed: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((each) => withoutDefaults(each, renamed));
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
    if (name === 'properties') return [[name, propertiesWithoutDefaults(each, renamed)]];
    if (name === 'default') return [];
    if (name !== '$ref' || typeof each !== 'string') return [[name, withoutDefaults(each, renamed)]];
    const id = each.slice(reference.length);
    return [[name, renamed.has(id) ? reference + changeOf(id) : each]];
  });
  return Object.fromEntries(kept);
}

/** A property may be called `default`. */
function propertiesWithoutDefaults(properties: unknown, renamed: ReadonlySet<string>): Json {
  return Object.fromEntries(Object.entries(members(properties)).map(([name, each]) => [name, withoutDefaults(each, renamed)]));
}

/**
 * Without what the document does not need: Kubernetes' own keywords, the bounds of integers that zod always gives, ids, the dialect and what a format
 * implies. The parts that it refers to are added to `parts`.
 */
function tidied(schema: object, parts: Record<string, Json>): Json {
  const kept = Object.entries(schema).flatMap(([name, value]): [string, unknown][] => {
    if (name === '$defs') {
      for (const [id, part] of Object.entries(members(value))) parts[id] = tidied(members(part), parts);
      return [];
    }
    if (name === 'properties')
      return [[name, Object.fromEntries(Object.entries(members(value)).map(([key, each]) => [key, cleaned(each, parts)]))]];
    if (isNeedless(name, value, schema)) return [];
    if (name === '$ref' && typeof value === 'string') return [[name, value.replace('#/$defs/', reference)]];
    if (literals.has(name)) return [[name, value]];
    return [[name, cleaned(value, parts)]];
  });
  return withTypes(Object.fromEntries(kept));
}

const literals: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples']);
const ownKeywords: ReadonlySet<string> = new Set(['$schema', 'id', 'nullable']);

function isNeedless(name: string, value: unknown, schema: object): boolean {
  if (ownKeywords.has(name) || name.startsWith('x-')) return true;
  if (name === 'minimum' || name === 'maximum') return isBoundOfIntegers(value);
  if (name === 'pattern') return 'format' in schema && (schema.format === 'date-time' || schema.format === 'date');
  return name === 'propertyNames' && JSON.stringify(value) === '{"type":"string"}';
}

/** A nullable field has two types: shorter than two schemas, and supported by generators. Variants are more specific than the object that they are. */
function withTypes(schema: Json): Json {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf)) return schema;
  if (rest['type'] === 'object' && !('properties' in rest)) {
    const { type: _, additionalProperties: __, ...said } = rest;
    return { ...said, anyOf };
  }
  if (anyOf.length !== 2 || 'type' in rest) return schema;
  const [first, second] = anyOf.map(members);
  const isNull = second?.['type'] === 'null' && Object.keys(second).length === 1;
  if (first === undefined || !isNull || typeof first['type'] !== 'string' || 'enum' in first || 'const' in first) return schema;
  return { ...first, type: [first['type'], 'null'], ...rest };
}

/** zod adds this to every integer. */
function isBoundOfIntegers(value: unknown): boolean {
  return typeof value === 'number' && !Number.isSafeInteger(2 * value);
}

function cleaned(value: unknown, parts: Record<string, Json>): unknown {
  if (Array.isArray(value)) return value.map((each) => cleaned(each, parts));
  return typeof value === 'object' && value !== null ? tidied(value, parts) : value;
}

export function members(value: unknown): Json {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
