import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { newTimedId } from '../../../core/ids.ts';
import { transformCode, transformType } from '../../../resources/transform.ts';
import { describeEvent } from '../../../sandbox/event-description.ts';
import type { TransformType } from '../../../sandbox/jobs.ts';
import { type Call, operation } from '../../http/operation.ts';
import { RawJson } from '../../http/raw-json.ts';
import { findContent } from '../../records/object-sharing.ts';
import { idOrSlug } from '../../records/record-fields.ts';
import { sentSynonym, underBothNames } from '../../records/synonyms.ts';
import { problemText } from '../shared/code-problem.ts';
import { sampleEvent, sampleHeaders, samplePayloadText } from '../shared/sample-event.ts';
import { contentFormats } from './content-formats.ts';

const body = z.strictObject({
  transformId: idOrSlug.optional().describe('Id or slug of a transform; or code.'),
  type: transformType.optional().describe('Of code; jsonata when absent.'),
  transformType: sentSynonym(transformType, 'type'),
  ...contentFormats.body,
  code: transformCode.optional(),
  source: z.string().max(63).optional().describe('Slug of the source of the event. Default: sample.'),
  ...sampleEvent,
});

/** Output of a transform for an event. It runs in the sandbox, as it does for deliveries. */
export const transformTestOperation = operation({
  method: 'POST',
  path: '/transforms/test',
  operationId: 'testTransform',
  summary: 'Try a transform on a sample event',
  description: 'Runs a stored transform or the given code in the sandbox of deliveries. The answer is 200 also when the code fails.',
  scope: 'write',
  body,
  freeField: 'payload',
  requestExample: { type: 'jsonata', code: '{"text": "Order " & payload.id}', payload: { id: 'o-1' } },
  answer: {
    status: 200,
    description: 'What would be delivered, or why the transform fails.',
    schema: z.union([
      z
        .object({
          success: z.literal(true).describe('It ran.'),
          output: z.unknown().describe('JSON; the text where the content type is another; null: the event would not be delivered.'),
          result: z.unknown().describe('The same as output.'),
          contentType: z.string().nullable().describe('Content type of the output.'),
          warning: z
            .string()
            .optional()
            .describe('Numbers of the payload that the transform cannot distinguish and that may have changed.'),
        })
        .meta({ id: 'TransformOutput', description: 'What would be delivered.' }),
      z
        .object({ success: z.literal(false).describe('It failed.'), error: z.string().describe('What went wrong, and where.') })
        .meta({ id: 'TransformFailure', description: 'Why the transform fails.' }),
    ]),
    example: { success: true, output: { text: 'Order o-1' }, result: { text: 'Order o-1' }, contentType: 'application/json' },
  },
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const { services, caller, signal } = call;
    const nowMs = services.clock.now();
    const event = {
      description: describeEvent({
        id: newTimedId('evt_', 0, nowMs),
        source: call.body.source ?? 'sample',
        receivedAtMs: nowMs,
        method: 'POST',
        contentType: 'application/json',
        query: call.body.query ?? '',
        headers: sampleHeaders(call.body),
      }),
      payload: await samplePayloadText(call),
    };
    const { output, problem } = await services.sandbox.transform(
      { organization: caller.organization.id },
      await transformOf(call),
      event,
      signal,
    );
    if (problem !== undefined) return { success: false, error: problemText(problem) };
    if (output === null) return { success: true, output: null, result: null, contentType: null };
    const { contentType, body: text, warning } = output;
    const result = contentType === 'application/json' ? new RawJson(text) : text;
    return { success: true, output: result, result, contentType, ...(warning !== null && { warning }) };
  },
});

async function transformOf(call: Call<unknown, z.output<typeof body>>): Promise<{ type: TransformType; code: string }> {
  const { transformId, code } = call.body;
  const type = underBothNames<TransformType>(call.body, { of: 'type', synonym: 'transformType' });
  if ((transformId === undefined) === (code === undefined))
    throw new PosthornError('VALIDATION_FAILED', 'Send transformId or code, one of them.');
  if (code !== undefined) return { type: type ?? 'jsonata', code };
  if (type !== undefined) throw new PosthornError('VALIDATION_FAILED', 'type goes with code; a stored transform has its own.');
  return await findContent(call, 'Transform', transformId ?? '');
}
