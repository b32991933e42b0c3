import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { jsonSchemaText } from '../../../core/json-schema-text.ts';
import { bodyMember } from '../../http/body-member.ts';
import { type Call, operation } from '../../http/operation.ts';
import { findContent } from '../../records/object-sharing.ts';
import { checkedSchema, sentSchema } from './sent-schema.ts';

const maxErrors = 100;

const answer = {
  status: 200,
  description: 'Whether the payload meets the schema, and what it breaks; at most 100 errors.',
  schema: z.object({
    valid: z.boolean().describe('Whether it meets the schema.'),
    errors: z
      .array(
        z.object({ path: z.string().describe('JSON Pointer into the payload.'), message: z.string().describe('What is wrong there.') }),
      )
      .describe('What it breaks.'),
  }),
  example: { valid: false, errors: [{ path: '', message: "must have required property 'id'" }] },
} as const;
const payload = z.unknown().describe('Any JSON.');

/** Violations of a schema by a payload. It is checked in the sandbox, as the payloads of events are. */
export const schemaValidateOperation = operation({
  method: 'POST',
  path: '/schemas/{id}/validate',
  operationId: 'validatePayload',
  summary: 'Check a payload against a schema',
  scope: 'read',
  body: z.strictObject({ payload }),
  freeField: 'payload',
  requestExample: { payload: { amount: 5 } },
  answer,
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const sent = await sentPayload(call);
    const { jsonSchema } = await findContent(call, 'PayloadSchema', call.params['id'] ?? '');
    return await validated(call, jsonSchema, sent);
  },
});

/** Validates against a schema that is not stored. */
export const schemaTestOperation = operation({
  method: 'POST',
  path: '/schemas/test',
  operationId: 'testSchema',
  summary: 'Try a schema on a payload',
  description: 'The schema does not have to be stored. An invalid JSON Schema is 400.',
  scope: 'read',
  body: z.strictObject({ jsonSchema: sentSchema, payload }),
  freeField: 'payload',
  requestExample: { jsonSchema: { type: 'object', required: ['id'] }, payload: { amount: 5 } },
  answer,
  handle: async (call) => {
    const sent = await sentPayload(call);
    return await validated(call, await checkedSchema(call, call.body.jsonSchema, undefined), sent);
  },
});

async function sentPayload(call: Call): Promise<Buffer> {
  const sent = await bodyMember(call, 'payload');
  if (sent === null) throw new PosthornError('VALIDATION_FAILED', 'payload is required.');
  return sent;
}

async function validated({ services, caller, signal }: Call, jsonSchema: unknown, sent: Buffer): Promise<z.input<typeof answer.schema>> {
  const schema = jsonSchemaText(jsonSchema);
  if (schema === null) return { valid: false, errors: [{ path: '', message: 'cannot be checked: the schema is too large' }] };
  const [errors = []] = await services.sandbox.validate({ organization: caller.organization.id }, [schema], sent, {
    maxProblems: maxErrors,
    signal,
  });
  return { valid: errors.length === 0, errors };
}
