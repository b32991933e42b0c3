import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { isCidr } from '../../src/resources/cidr.ts';
import { emailAddress } from '../../src/resources/email-address.ts';
import { isRecord } from '../../src/resources/field-tree.ts';
import { headerName, headerValue } from '../../src/resources/http-header.ts';
import { examplesIn, list, members, type Schema } from './described-operations.ts';

/** The schemas of an OpenAPI document, as read by a validator without zod. */
export class DocumentSchemas {
  readonly #components: unknown;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  /** By the text of the schema: most are a reference, of which there are many. */
  readonly #compiled = new Map<string, ValidateFunction>();

  constructor(document: Schema) {
    this.#components = document['components'];
    formats.default(this.#ajv);
    this.#ajv.addFormat('cidr', isCidr);
    this.#ajv.addFormat('email-list', areEmailAddresses);
    this.#ajv.addFormat('header-map', isHeaderMap);
    const whole = { components: this.#components };
    this.#ajv.addSchema(whole, 'open');
    this.#ajv.addSchema(this.#closed(whole), 'closed');
  }

  /** What is wrong with the value, in words; none when it fits. `closed`: an object has no field that is not described. */
  complaints(schema: Schema, value: unknown, extent: Extent = 'open'): string[] {
    const validate = this.#validatorOf(schema, extent);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath || '(whole)'} ${message} ${JSON.stringify(params)}`,
    );
  }

  accepts(schema: Schema, value: unknown): boolean {
    return this.complaints(schema, value).length === 0;
  }

  /** The schema itself, or what its `$ref` points at. */
  resolved(schema: Schema): Schema {
    const reference = schema['$ref'];
    if (typeof reference !== 'string') return schema;
    const parts = reference.replace('#/components/', '').split('/');
    return this.resolved(members(parts.reduce<unknown>((at, part) => members(at)[part], this.#components)));
  }

  /** Examples of a media type: its own, or those of the records in its schema. */
  examplesOf(media: Schema): unknown[] {
    const own = examplesIn(media);
    if (own.length > 0) return own;
    const example = this.#exampleOf(members(media['schema']));
    return example === undefined ? [] : [example];
  }

  /** The example of a schema, or one of what its properties refer to. */
  #exampleOf(given: Schema): unknown {
    const schema = this.resolved(given);
    if (Array.isArray(schema['examples'])) return schema['examples'][0];
    const properties = Object.entries(members(schema['properties'])).map(([name, property]) => {
      const { items } = this.resolved(members(property));
      const example = this.#exampleOf(members(items ?? property));
      return [name, items === undefined || example === undefined ? example : [example]];
    });
    return properties.length === 0 || properties.some(([, example]) => example === undefined) ? undefined : Object.fromEntries(properties);
  }

  /** The schema with every object that has properties closed, unless it allows others; records that share properties have them all. */
  #closed(schema: Schema): Schema {
    const inside = (value: unknown): unknown => (Array.isArray(value) ? value.map(inside) : isRecord(value) ? this.#closed(value) : value);
    const { allOf, ...rest } = schema;
    const whole = Array.isArray(allOf) ? { ...rest, ...this.#merged(allOf) } : schema;
    const made = Object.fromEntries(Object.entries(whole).map(([name, value]) => [name, literals.has(name) ? value : inside(value)]));
    const isOpenRecord = made['type'] === 'object' && isRecord(made['properties']) && !Object.hasOwn(made, 'additionalProperties');
    return isOpenRecord ? { ...made, additionalProperties: false } : made;
  }

  #merged(parts: readonly unknown[]): Schema {
    const all = parts.map((part): Schema => {
      const { allOf, ...rest } = this.resolved(members(part));
      return Array.isArray(allOf) ? this.#merged([...allOf, rest]) : rest;
    });
    const properties = Object.assign({}, ...all.map((part) => members(part['properties'])));
    return { type: 'object', properties, required: all.flatMap((part) => list(part['required'])) };
  }

  #validatorOf(schema: Schema, extent: Extent): ValidateFunction {
    const text = extent + JSON.stringify(schema);
    const known = this.#compiled.get(text);
    if (known !== undefined) return known;
    const validate = this.#ajv.compile(referringTo(extent, extent === 'closed' ? this.#closed(schema) : schema));
    this.#compiled.set(text, validate);
    return validate;
  }
}

/** Names of the document with its records as they are described, and with all of them closed. */
type Extent = 'open' | 'closed';

/** The schema with its references into the document of this name, which Ajv compiles once for all schemas that refer to it. */
function referringTo(extent: Extent, schema: Schema): Schema {
  const inside = (value: unknown): unknown =>
    Array.isArray(value) ? value.map(inside) : isRecord(value) ? referringTo(extent, value) : value;
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => {
      if (name === '$ref' && typeof value === 'string') return [name, `${extent}${value}`];
      return [name, literals.has(name) ? value : inside(value)];
    }),
  );
}

const literals: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples', 'example']);

function areEmailAddresses(text: string): boolean {
  const addresses = text.split(',').map((each) => each.trim());
  return addresses.length <= 20 && addresses.every((address) => address === '' || emailAddress.safeParse(address).success);
}

function isHeaderMap(text: string): boolean {
  try {
    const map: unknown = JSON.parse(text);
    const entries = isRecord(map) ? Object.entries(map) : null;
    return (
      entries !== null &&
      entries.length <= 50 &&
      entries.every(([name, value]) => headerName.safeParse(name).success && headerValue.safeParse(value).success)
    );
  } catch {
    return false;
  }
}
