import { z } from 'zod';
import { sentForm } from '../../../../core/sent-as.ts';
import type { AttemptView } from '../../../../data/shard/messages.ts';
import { detailField, shownAttemptDetail } from '../../../../data/shard/shown-attempt-detail.ts';
import { webhookWaitReasons } from '../../../../data/shard/waits.ts';
import type { WebhookDeadLetterReason, WebhookMessageStatus, WebhookMessageView } from '../../../../data/webhooks/webhook-message-view.ts';
import type { Call } from '../../../http/operation.ts';
import { isoTime, isoTimeOrNull, organizationId, timestamp } from '../../../records/record-fields.ts';
import { waitingFor, waitingUntil } from '../../messages/delivery-fields.ts';
import { cancellation, cancellationField } from '../../shared/cancel.ts';
import { sentFormFields } from '../../shared/sent-form.ts';

/** Records of messages to webhook endpoints and of their attempts. */

export const messageStatus = z.enum(['pending', 'processing', 'success', 'failed', 'exhausted', 'dlq']).meta({
  id: 'MessageStatus',
  description:
    'pending: queued. processing: being delivered. success: delivered. failed: will be tried again. exhausted: archived from the dead letters, or ended without an attempt. dlq: a dead letter.',
}) satisfies z.ZodType<WebhookMessageStatus>;

export const deadLetterReason = z.enum([
  'max_retries_exceeded',
  'circuit_breaker_exhausted',
  'endpoint_not_found',
  'payload_not_found',
  'secret_decryption_failed',
  'queue_limit_exceeded',
]) satisfies z.ZodType<WebhookDeadLetterReason>;

export const messageRecord = z
  .object({
    id: z.string().describe('Id of the message.'),
    organizationId,
    eventId: z.string().describe('Id of the event.'),
    eventType: z.string().nullable().describe('Name of the event type; null when the event is no longer stored.'),
    applicationId: z.string().describe('Id of the application.'),
    applicationName: z.string().nullable().describe('null when the application is gone.'),
    endpointId: z.string().describe('Id of the endpoint.'),
    endpointUrl: z.string().nullable().describe('null when the endpoint is gone.'),
    subscriptionId: z.string().nullable().describe('Id of the subscription; null when none was evaluated.'),
    status: messageStatus,
    attempts: z.int().min(0).describe('Attempts that were made.'),
    maxAttempts: z.int().min(0).describe('Attempts after which it is given up.'),
    nextAttemptAt: timestamp
      .nullable()
      .describe(
        'Earliest time of the next attempt where one has failed or the circuit is open, in the past when it waits for something else; else null.',
      ),
    waitingFor: waitingFor(webhookWaitReasons),
    waitingUntil,
    lastResponseStatus: z.int().nullable().describe('Status of the last answer; null without one.'),
    lastErrorType: z
      .string()
      .nullable()
      .describe(
        'timeout, http_error, network, dns, tls, blocked or gone: of the last attempt. Without one circuit_open where it waits for an open circuit or ended because of it; filtered or transform_failed where its transform is why it was not sent. secret_decryption_failed of a dead letter with this reason; disabled of one that waited 7 days for a disabled endpoint; cancelled of one that was cancelled; expired of one that was not delivered by its deadline.',
      ),
    lastErrorMessage: z.string().nullable().describe('What went wrong last, in words.'),
    labels: z.record(z.string(), z.string()).describe('Those of the event.'),
    replayedFrom: z.string().nullable().describe('The message of which this one is the replay or the retry.'),
    dlqReason: deadLetterReason.nullable().describe('null: it never was a dead letter.'),
    dlqMovedAt: timestamp.nullable().describe('When it became a dead letter.'),
    dlqRetryCount: z.int().min(0).describe('How often it was sent again as a dead letter.'),
    dlqLastRetryAt: timestamp.nullable().describe('When it was last sent again as a dead letter.'),
    createdAt: timestamp.describe('When it was made.'),
    completedAt: timestamp.nullable().describe('When it ended; null while it is under way.'),
    cancellation,
    expiresAt: timestamp
      .nullable()
      .describe('When it is given up unless it has been delivered by then; null: it has ended, or does not expire.'),
  })
  .meta({ id: 'OutboundMessage' });

export const messageAttempt = z
  .object({
    id: z.string().describe('Id of the attempt.'),
    messageId: z.string().describe('Id of the message.'),
    attemptNumber: z.int().min(1).describe('Number of the attempt, from 1.'),
    status: z.enum(['success', 'failed']).describe('What became of it.'),
    responseStatus: z.int().nullable().describe('Status of the answer; null without one.'),
    responseTimeMs: z.number().min(0).describe('Milliseconds that it took.'),
    responseBody: z.string().nullable().describe('Beginning of the answer; null without one.'),
    errorType: z.string().nullable().describe('null when it went well; else timeout, http_error, network, dns, tls, blocked or gone.'),
    errorMessage: z.string().nullable().describe('What went wrong; of an attempt that went well a warning of its transform, or null.'),
    createdAt: timestamp.describe('When it began.'),
    completedAt: timestamp.describe('When it ended.'),
    ...sentFormFields,
    detail: shownAttemptDetail.optional(),
  })
  .meta({ id: 'OutboundMessageAttempt' });

/** Examples of messages. */
export const shownMessage = {
  eventType: 'order.paid',
  applicationName: 'Customer A',
  endpointUrl: 'https://customer.example.com/hooks',
  status: 'success',
  attempts: 1,
  maxAttempts: 8,
  nextAttemptAt: null,
  waitingFor: null,
  waitingUntil: null,
  expiresAt: null,
  lastResponseStatus: 200,
  lastErrorType: null,
  lastErrorMessage: null,
  labels: { country: 'at' },
  replayedFrom: null,
  dlqReason: null,
  dlqMovedAt: null,
  dlqRetryCount: 0,
  dlqLastRetryAt: null,
};

/** Null: it is deleted, and nothing is known of it. */
type Names = Map<string, string | null>;

/** Names of applications and URLs of endpoints, each read once; of deleted ones as they were at the end. */
export class MessageNames {
  readonly #call: Pick<Call, 'services' | 'caller'>;
  readonly #applications: Names = new Map();
  readonly #urls: Names = new Map();

  constructor(call: Pick<Call, 'services' | 'caller'>) {
    this.#call = call;
  }

  async records(views: readonly WebhookMessageView[]): Promise<z.input<typeof messageRecord>[]> {
    const org = this.#call.caller.organization.id;
    // Lookups of a long export are not cached without bound.
    if (this.#urls.size > maxNames) this.#urls.clear();
    if (this.#applications.size > maxNames) this.#applications.clear();
    const unknown = (ids: string[], names: Names): string[] => [...new Set(ids)].filter((id) => !names.has(id));
    const applicationIds = unknown(
      views.map(({ applicationId }) => applicationId),
      this.#applications,
    );
    const endpointIds = unknown(
      views.map(({ endpointId }) => endpointId),
      this.#urls,
    );
    await this.#read(org, applicationIds, endpointIds);
    return views.map((view) =>
      toRecord(view, {
        organizationId: org,
        applicationName: this.#applications.get(view.applicationId) ?? null,
        endpointUrl: this.#urls.get(view.endpointId) ?? null,
      }),
    );
  }

  /** URLs of endpoints by id. */
  async urls(endpointIds: readonly string[]): Promise<ReadonlyMap<string, string | null>> {
    await this.#read(this.#call.caller.organization.id, [], endpointIds);
    return this.#urls;
  }

  async #read(org: string, applicationIds: readonly string[], endpointIds: readonly string[]): Promise<void> {
    const { services } = this.#call;
    const [applications, endpoints] = await Promise.all([
      services.webhooks.applicationsById(org, applicationIds),
      services.webhooks.endpointsById(org, endpointIds),
    ]);
    for (const { id, name } of applications.values()) this.#applications.set(id, name);
    for (const { id, url } of endpoints.values()) this.#urls.set(id, url);
    const gone = {
      applications: applicationIds.filter((id) => !applications.has(id)),
      endpoints: endpointIds.filter((id) => !endpoints.has(id)),
    };
    const past = await services.webhooks.deletedNames(org, gone);
    for (const id of gone.applications) this.#applications.set(id, past.get(id) ?? null);
    for (const id of gone.endpoints) this.#urls.set(id, past.get(id) ?? null);
  }
}

const maxNames = 5000;

function toRecord(
  view: WebhookMessageView,
  names: { organizationId: string; applicationName: string | null; endpointUrl: string | null },
): z.input<typeof messageRecord> {
  const {
    event,
    deadLetter,
    nextAttemptAtMs,
    waitingUntilMs,
    createdAtMs,
    completedAtMs,
    expiresAtMs,
    cancellation: made,
    lastSentAs: _,
    ...rest
  } = view;
  return {
    ...rest,
    ...names,
    ...cancellationField(made),
    eventType: event?.typeName ?? null,
    labels: event?.labels ?? {},
    nextAttemptAt: isoTimeOrNull(nextAttemptAtMs),
    waitingUntil: isoTimeOrNull(waitingUntilMs),
    dlqReason: deadLetter?.reason ?? null,
    dlqMovedAt: isoTimeOrNull(deadLetter?.movedAtMs ?? null),
    dlqRetryCount: deadLetter?.retries ?? 0,
    dlqLastRetryAt: isoTimeOrNull(deadLetter?.lastRetryAtMs ?? null),
    createdAt: isoTime(createdAtMs),
    completedAt: isoTimeOrNull(completedAtMs),
    expiresAt: isoTimeOrNull(expiresAtMs),
  };
}

export function toAttempt(messageId: string, view: AttemptView): z.input<typeof messageAttempt> {
  const { startedAtMs, durationMs, attemptNumber, detail, sentAs, ...rest } = view;
  return {
    ...rest,
    ...detailField(detail),
    ...sentForm('endpoint', sentAs),
    id: attemptId(messageId, attemptNumber),
    messageId,
    attemptNumber,
    status: view.errorType === null ? 'success' : 'failed',
    responseTimeMs: durationMs,
    createdAt: isoTime(startedAtMs),
    completedAt: isoTime(startedAtMs + durationMs),
  };
}

/** `msg_…` and the number of the attempt. */
function attemptId(messageId: string, attemptNumber: number): string {
  return `${messageId.replace(/^msg_/, 'att_')}_${attemptNumber}`;
}
