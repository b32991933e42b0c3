import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { isCidr } from '../../src/resources/cidr.ts';
import { emailAddress } from '../../src/resources/email-address.ts';
import { isRecord } from '../../src/resources/field-tree.ts';
import { headerName, headerValue } from '../../src/resources/http-header.ts';
import { members, type Schema } from './described-operations.ts';

/** The schemas of an OpenAPI document, as a validator that knows nothing of zod reads them. */
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
  }

  /** What is wrong with the value, in words; none when it fits. */
  complaints(schema: Schema, value: unknown): string[] {
    const validate = this.#validatorOf(schema);
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

  #validatorOf(schema: Schema): ValidateFunction {
    const text = JSON.stringify(schema);
    const known = this.#compiled.get(text);
    if (known !== undefined) return known;
    const validate = this.#ajv.compile({ ...schema, components: this.#components });
    this.#compiled.set(text, validate);
    return validate;
  }
}

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
