import { isPosthornError, PosthornError } from '../../../core/errors.ts';
import { parseTimedId } from '../../../core/ids.ts';
import { kinds, type ServedKind } from '../../../resources/kinds.ts';
import { type Call, type Family, operation } from '../../http/operation.ts';
import { isoTime } from '../../records/record-fields.ts';
import { explainAlert } from './explain-alert.ts';
import { explainExecution } from './explain-cron.ts';
import { explainDeleted } from './explain-deleted.ts';
import { explainEvent } from './explain-event.ts';
import { explainMessage } from './explain-message.ts';
import { explainOrganization } from './explain-organization.ts';
import { explainResource, kindOfId } from './explain-resource.ts';
import { explainApplication, explainEndpoint, explainSubscription } from './explain-webhook-object.ts';
import { type Explanation, explanation } from './explanation.ts';

type Explain = (call: Call, id: string) => Promise<Explanation | null>;

/** Explains everything that is no resource with a cache, by the prefix of its id. Returns null when the organization has nothing with this id. */
const others: Readonly<Record<string, Explain>> = {
  evt_: explainEvent,
  msg_: async (call, id) => (await explainMessage(call, id)) ?? (await explainAlert(call, id)),
  test_: explainAlert,
  exec_: explainExecution,
  [kinds.Organization.idPrefix]: explainOrganization,
  [kinds.WebhookApplication.idPrefix]: async (call, id) =>
    (await explainApplication(call, id)) ?? (await explainDeleted(call, 'WebhookApplication', id)),
  [kinds.WebhookEndpoint.idPrefix]: async (call, id) =>
    (await explainEndpoint(call, id)) ?? (await explainDeleted(call, 'WebhookEndpoint', id)),
  [kinds.WebhookSubscription.idPrefix]: explainSubscription,
};

export const explain: Family = {
  name: 'Explain',
  noun: 'thing',
  description: 'The story of anything that has an id: what happened, what it waits for, and what to do.',
  shown: {
    id: 'msg_00m2k3x7q4uabcdefghijklmnop',
    kind: 'delivery',
    summary: 'The delivery waits after 1 of 11 attempts. The last attempt failed. The next one is made after the backoff.',
    state: 'retrying',
    reason: 'retry',
    what: 'attempt',
    text: 'Attempt 1 failed (http_error) after 87 ms: the receiver returned 500. Its body is the payload, unsigned.',
    data: { attemptNumber: 1, responseStatus: 500, payloadForm: 'full', signatureScheme: null },
    command: 'curl "$URL/api/deliveries/msg_00m2k3x7q4uabcdefghijklmnop" -H "x-api-key: $KEY"',
  },
  operations: [
    operation({
      method: 'GET',
      path: '/explain/{id}',
      operationId: 'explain',
      summary: 'Explain an event, a message or a resource',
      description:
        'By its id: of an event, delivery, message, cron execution or alert, of any resource, also a deleted one while it is known, or of the organization. That of an API key needs the role admin.',
      scope: 'read',
      isScan: true,
      answer: { status: 200, description: 'Its story.', schema: explanation },
      errors: ['RESOURCE_NOT_FOUND', 'FORBIDDEN'],
      handle: async (call) => {
        const { id = '' } = call.params;
        const kind = kindOfId(id);
        if (kind !== undefined) return await resourceOrDeleted(call, kind, id);
        const prefix = id.slice(0, id.indexOf('_') + 1);
        const found = Object.hasOwn(others, prefix) ? await others[prefix]?.(call, id) : null;
        if (found == null) throw unknown(id);
        return found;
      },
    }),
  ],
};

async function resourceOrDeleted(call: Call, kind: ServedKind, id: string): Promise<Explanation> {
  try {
    return await explainResource(call, kind, id);
  } catch (error) {
    const deleted = isPosthornError(error, 'RESOURCE_NOT_FOUND') ? await explainDeleted(call, kind, id) : null;
    if (deleted === null) throw error;
    return deleted;
  }
}

/** Reveals no more than the id itself: it may belong to another organization. */
function unknown(id: string): PosthornError {
  const shown = id.length > 64 ? `${id.slice(0, 64)}…` : id;
  const madeAtMs = parseTimedId(id)?.createdAtMs;
  const age =
    madeAtMs === undefined ? '' : ` By its id it was made at ${isoTime(madeAtMs)}: what has ended is removed once its retention is over.`;
  return new PosthornError('RESOURCE_NOT_FOUND', `There is nothing with the id "${shown}".${age}`);
}
