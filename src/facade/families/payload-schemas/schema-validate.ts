import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { jsonSchemaText } from '../../../core/json-schema-text.ts';
import { bodyMember } from '../../http/body-member.ts';
import { operation } from '../../http/operation.ts';
import { findContent } from '../../records/sharing.ts';

const maxErrors = 100;

/** What a payload breaks of a schema. It is checked in the sandbox, as the payloads of events are. */
export const schemaValidateOperation = operation({
  method: 'POST',
  path: '/schemas/{id}/validate',
  operationId: 'validatePayload',
  summary: 'Check a payload against a schema',
  scope: 'read',
  body: z.strictObject({ payload: z.unknown().describe('Any JSON.') }),
  freeField: 'payload',
  requestExample: { payload: { amount: 5 } },
  answer: {
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
  },
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const payload = await bodyMember(call, 'payload');
    if (payload === null) throw new PosthornError('VALIDATION_FAILED', 'payload is required.');
    const { jsonSchema } = await findContent(call, 'PayloadSchema', call.params['id'] ?? '');
    const schema = jsonSchemaText(jsonSchema);
    if (schema === null) return { valid: false, errors: [{ path: '', message: 'cannot be checked: the schema is too large' }] };
    const { services, caller, signal } = call;
    const [errors = []] = await services.sandbox.validate(caller.organization.id, [schema], payload, { maxProblems: maxErrors, signal });
    return { valid: errors.length === 0, errors };
  },
});
