import { z } from 'zod';
import { parsedJson } from '../../../../core/json-text.ts';
import { endpointTestResult, endpointTestTask } from '../../../../data/tasks/endpoint-test-task.ts';
import { text } from '../../../../resources/text.ts';
import { bodyMember } from '../../../http/body-member.ts';
import { operation } from '../../../http/operation.ts';
import { single } from '../../shared/envelope.ts';
import { namedEventType } from '../event-types/event-type-lookup.ts';
import { findEndpoint } from './find-endpoint.ts';

/** Until a worker has taken the test, and for the way back. */
const marginMs = 5000;

export const testEndpoint = operation({
  method: 'POST',
  path: '/webhook-endpoints/{id}/test',
  operationId: 'testWebhookEndpoint',
  summary: 'Send a test to an endpoint',
  description: [
    'A delivery worker posts the payload once, signed and with the headers of a message and `x-posthorn-test: true`, also to an endpoint that is disabled. Nothing is recorded or counted, no limit of the endpoint',
    'or its application applies, the circuit does not notice, and 410 does not disable the endpoint. The answer is 200 also when the test fails; 503 when no worker could make it.',
  ].join(' '),
  scope: 'write',
  body: z.strictObject({
    eventType: text(1, 100)
      .optional()
      .describe('Name or id of an event type. Without `payload` its examplePayload is sent, if it has one. Default: `posthorn.test`.'),
    payload: z.unknown().optional().describe('Any JSON. Default: a sample event.'),
  }),
  freeField: 'payload',
  requestExample: { payload: { id: 'o-17', total: 12.5 } },
  answer: {
    status: 200,
    description: 'How the test went.',
    schema: single(endpointTestResult),
    example: {
      data: { success: true, responseStatus: 200, responseTimeMs: 87, responseBody: 'ok', errorType: null, errorMessage: null },
    },
  },
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const { org, id, applicationId, timeoutSeconds } = await findEndpoint(call, call.params['id'] ?? '');
    const { eventType } = call.body;
    const named = eventType === undefined ? null : (await namedEventType(call, eventType)).spec;
    const payload = await bodyMember(call, 'payload');
    return {
      data: await call.services.tasks.call(endpointTestTask, {
        org,
        credential: call.caller.credential.id,
        input: {
          applicationId,
          endpointId: id,
          eventType: named?.name ?? null,
          payload: payload?.toString() ?? exampleOf(named),
        },
        timeoutMs: timeoutSeconds * 1000 + marginMs,
      }),
    };
  },
});

/** One that is not JSON is not programmed; the event type has a condition. */
function exampleOf(eventType: { examplePayload?: string | undefined } | null): string | null {
  const example = eventType?.examplePayload;
  return example === undefined || parsedJson(example).problem !== undefined ? null : example;
}
