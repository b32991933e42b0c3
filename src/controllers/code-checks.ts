import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Refusal } from '../compile/compiled.ts';
import type { OrganizationFacts } from '../compile/organization.ts';
import { jsonSchemaText } from '../core/json-schema-text.ts';
import type { ContentOf } from '../resources/sharing.ts';
import type { Problem } from '../sandbox/jobs.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

/** What was found out about a code; it stays so. */
const maxKnown = 10_000;

export type SchemaCheck = { jsonSchema: string; refusal?: undefined } | { jsonSchema?: undefined; refusal: Refusal };

/** Checks in the sandbox whether users' code parses, once per text. Rejects with UNAVAILABLE when it is overloaded. */
export class CodeChecks {
  readonly #sandbox: Sandbox;
  readonly #known = new LRUCache<string, { problem: Problem | null }>({ max: maxKnown });

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
  }

  /** Why a transform cannot be put in force. */
  async transform({ type, code }: ContentOf<'Transform'>, { id }: OrganizationFacts): Promise<Refusal | null> {
    const problem = await this.#once(`${type} ${code}`, () => this.#sandbox.checkTransform(id, { type, code }));
    return problem === null ? null : { reason: 'InvalidTransform', message: messageOf(problem) };
  }

  /** The JSON text of a schema, or why it cannot be put in force. */
  schema({ jsonSchema }: ContentOf<'PayloadSchema'>, organization: OrganizationFacts): Promise<SchemaCheck> {
    return this.jsonSchema('jsonSchema', jsonSchema, organization);
  }

  /** The same of the schema in any field. */
  async jsonSchema(field: string, schema: unknown, { id }: OrganizationFacts): Promise<SchemaCheck> {
    const jsonSchema = jsonSchemaText(schema);
    if (jsonSchema === null) return { refusal: { reason: 'SchemaTooLarge', message: `${field} exceeds 65,536 bytes as JSON` } };
    const problem = await this.#once(`schema ${jsonSchema}`, () => this.#sandbox.checkSchema(id, jsonSchema));
    return problem === null ? { jsonSchema } : { refusal: { reason: 'InvalidSchema', message: messageOf(problem) } };
  }

  async #once(text: string, check: () => Promise<Problem | null>): Promise<Problem | null> {
    const key = createHash('sha256').update(text).digest('base64');
    const known = this.#known.get(key) ?? { problem: await check() };
    this.#known.set(key, known);
    return known.problem;
  }
}

function messageOf({ message, line, column }: Problem): string {
  if (line === null) return message;
  return `line ${line}${column === null ? '' : `, column ${column}`}: ${message}`;
}
