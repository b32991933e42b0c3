import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { destinationTestResult, destinationTestTask } from '../../../data/tasks/destination-test-task.ts';
import { kinds } from '../../../resources/kinds.ts';
import { destinationBeyondPlan } from '../../../resources/plan-gates.ts';
import { bodyMember } from '../../http/body-member.ts';
import { operation } from '../../http/operation.ts';
import { findToRead, idOf } from '../../records/lookup.ts';

const { timeoutMs: httpTimeoutMs } = kinds.Destination.spec.shape.http.unwrap().shape;
/** Until a worker has taken the test, and for the way back. */
const marginMs = 5000;

const synonyms = {
  status: z.int().nullable().optional().describe('The same as statusCode.'),
  latencyMs: z.int().min(0).optional().describe('The same as latency.'),
};
const [delivered, written, failed] = destinationTestResult.options;
const shownResult = z
  .union([
    delivered.extend(synonyms).meta({ id: 'HttpTestResult', description: 'Of an HTTP destination that took the test.' }),
    written,
    failed.extend(synonyms).meta({ id: 'TestFailure', description: 'Of a destination that did not take the test.' }),
  ])
  .meta({ id: 'DestinationTestResult' });

export const destinationTestOperation = operation({
  method: 'POST',
  path: '/destinations/{id}/test',
  operationId: 'testDestination',
  summary: 'Send a test to a destination',
  description: [
    'A delivery worker sends the payload once, as it was sent, with the headers, credentials, signature and limits of a delivery and the header',
    '`x-posthorn-test: true`. Nothing is recorded or counted, and the circuit does not notice. The answer is 200 also when the test fails;',
    '503 when no worker could make it.',
  ].join(' '),
  scope: 'write',
  body: z.strictObject({ payload: z.record(z.string(), z.unknown()).optional().describe('Default: a sample event.') }),
  freeField: 'payload',
  requestExample: { payload: { type: 'order.created', orderId: 7 } },
  answer: { status: 200, description: 'How the test went.', schema: shownResult },
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const destination = await findToRead(call, 'Destination', call.params['id'] ?? '');
    const beyondPlan = destinationBeyondPlan(destination.spec, call.caller.organization.plan);
    if (beyondPlan !== null) throw new PosthornError('FORBIDDEN', `The destination is suspended: ${beyondPlan}.`);
    const timeoutMs = destination.spec.http?.timeoutMs ?? httpTimeoutMs.parse(undefined);
    const payload = await bodyMember(call, 'payload');
    const result = await call.services.tasks.call(destinationTestTask, {
      org: call.caller.organization.id,
      credential: call.caller.credential.id,
      input: {
        destinationId: idOf(destination),
        generation: destination.metadata.generation,
        payload: payload?.toString() ?? null,
      },
      timeoutMs: timeoutMs + marginMs,
    });
    return 'statusCode' in result ? { ...result, status: result.statusCode, latencyMs: result.latency } : result;
  },
});
