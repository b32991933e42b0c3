import { hash } from 'node:crypto';
import type { Provider } from '../core/providers.ts';
import { textAt } from '../core/text-at.ts';
import { bodyDigest } from './body-digest.ts';
import type { EventContext } from './event-context.ts';
import { headerValue } from './identifying-values.ts';
import type { ReceivedRequest } from './received-request.ts';

interface DistinctEvents {
  /** Fields of the signed body of which each event has another value than all others. */
  fields: readonly string[];
  /** Values of `action` in the body with which those fields stay as they were. */
  exceptActions?: readonly string[];
  /** Header that says what the body means, where one body is sent for several events. */
  kindHeader?: string;
}

/**
 * Which signed contents no two events of a provider share. `always`: the id of the event, or a time and an id, are signed; `never`: senders decide
 * what they send. Of the others some events do: GitHub sends the same body for each run of a workflow that is dispatched by hand, and for a member
 * who joins a team again; Bitbucket when a branch is deleted and pushed again; Sentry when an issue is resolved again.
 */
const distinctEvents: Record<Provider, 'always' | 'never' | DistinctEvents> = {
  generic: 'never',
  custom: 'never',
  stripe: 'always',
  slack: 'always',
  paddle: 'always',
  'standard-webhooks': 'always',
  svix: 'always',
  gitlab: 'always',
  intercom: { fields: ['id'] },
  github: {
    fields: [
      // Only pushes have a `pusher`, and the time of the push.
      'pusher.name',
      ...['issue', 'pull_request', 'comment', 'discussion', 'release', 'alert'].map((object) => `${object}.updated_at`),
      ...['workflow_run', 'deployment_status'].map((object) => `${object}.updated_at`),
      'review.submitted_at',
      'starred_at',
    ],
    exceptActions: [
      ...['pinned', 'unpinned', 'resolved', 'unresolved', 'enqueued', 'dequeued'],
      ...['auto_merge_enabled', 'auto_merge_disabled', 'review_requested', 'review_request_removed'],
    ],
  },
  shopify: { fields: ['updated_at'], kindHeader: 'x-shopify-topic' },
  bitbucket: {
    fields: [
      ...['pullrequest', 'comment', 'issue', 'commit_status'].map((object) => `${object}.updated_on`),
      ...['approval.date', 'changes_request.date'],
    ],
    kindHeader: 'x-event-key',
  },
  sentry: { fields: ['data.event.event_id', 'data.error.event_id'] },
  twilio: { fields: ['MessageSid', 'RecordingSid', 'SequenceNumber'] },
};

type SignedRequest = Pick<ReceivedRequest, 'signed'>;

/** Whether `signedIdentity` looks at the parsed body. */
export function readsSignedPayload(provider: Provider, { signed }: SignedRequest): boolean {
  return signed !== null && typeof distinctEvents[provider] === 'object';
}

/** Paths of the texts in the parsed body that `signedIdentity` looks at. */
export function signedFields(provider: Provider, { signed }: SignedRequest): readonly string[] {
  const distinct = distinctEvents[provider];
  return signed !== null && typeof distinct === 'object' ? [...distinct.fields, 'action'] : [];
}

/**
 * What a signed event has in common with itself alone, whatever else the request says, so that a recorded request is known again under another unsigned id;
 * null when nothing is signed, or another event may have the same content.
 */
export function signedIdentity(provider: Provider, context: EventContext, { signed }: SignedRequest): string | null {
  const distinct = distinctEvents[provider];
  if (signed === null || distinct === 'never') return null;
  if (distinct === 'always') return contentIdentity('', signed);
  const { fields, exceptActions = [], kindHeader } = distinct;
  const { payload } = context;
  const action = textAt(payload, 'action');
  if (action !== null && exceptActions.includes(action)) return null;
  if (!fields.some((field) => textAt(payload, field) !== null)) return null;
  const kind = kindHeader === undefined ? '' : (headerValue(context.headers, kindHeader) ?? '').toLowerCase();
  return contentIdentity(kind, signed);
}

function contentIdentity(kind: string, { prefix, body }: NonNullable<ReceivedRequest['signed']>): string {
  // A header has no line break, so that no id is taken for such a text.
  return `signed\n${kind}\n${hash('sha256', prefix, 'hex')}\n${bodyDigest(body)}`;
}
