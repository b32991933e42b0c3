import { z } from 'zod';
import { canonicalJson, canonicalJsonWithin } from '../../../core/canonical-json.ts';
import { PosthornError } from '../../../core/errors.ts';
import { jsonSchemaText } from '../../../core/json-schema-text.ts';
import { parsedStrictJson } from '../../../core/json-text.ts';
import { isRecord } from '../../../resources/field-tree.ts';
import type { Call } from '../../http/operation.ts';
import { refuseProblem } from '../shared/code-problem.ts';

export const schemaObject = z.record(z.string(), z.unknown());

/** A schema as bodies have it. */
export const sentSchema = z
  .union([schemaObject, z.string().max(65_536)])
  .describe('JSON Schema as an object or its JSON text: draft 2020-12 or, by its $schema, draft 07; at most 65,536 bytes.');

/** Whether both are the same JSON; a larger one than the current is not written out. */
function isSame(schema: unknown, current: unknown): boolean {
  const text = canonicalJson(current);
  return canonicalJsonWithin(schema, Buffer.byteLength(text)) === text;
}

/** The schema as an object. VALIDATION_FAILED when it is not JSON or, unless it is stored already, too large or no schema. */
export async function checkedSchema(
  call: Call,
  sent: Record<string, unknown> | string,
  current: unknown,
): Promise<Record<string, unknown>> {
  const schema = typeof sent === 'string' ? parsedSchema(sent) : sent;
  if (current !== undefined && isSame(schema, current)) return schema;
  const text = jsonSchemaText(schema);
  if (text === null) throw new PosthornError('VALIDATION_FAILED', 'jsonSchema: at most 65,536 bytes as JSON');
  refuseProblem('jsonSchema', await call.services.sandbox.checkSchema(call.caller.organization.id, text));
  return schema;
}

/** The schema in a text. VALIDATION_FAILED when it is no JSON object. */
export function parsedSchema(text: string): Record<string, unknown> {
  const { value, problem } = parsedStrictJson(text);
  if (problem !== undefined) throw new PosthornError('VALIDATION_FAILED', `jsonSchema: ${problem}`);
  if (isRecord(value)) return value;
  throw new PosthornError('VALIDATION_FAILED', 'jsonSchema: must be a JSON object');
}
