import type { SignedTarget } from '../../../core/sent-as.ts';
import { webhookOrganization } from '../../../core/webhook.ts';
import { defaultMessage } from '../../../data/shard/attempt-record.ts';
import type { AttemptView, Cancellation, DeliveryView, EventView } from '../../../data/shard/messages.ts';
import type { WaitReason } from '../../../data/shard/waits.ts';
import { type WebhookMessageView, webhookEventView } from '../../../data/webhooks/webhook-message-view.ts';
import type { Call } from '../../http/operation.ts';
import { fullPayloadMemory } from '../../http/request-memory.ts';
import { isoTime } from '../../records/record-fields.ts';
import { sentFormStep, signedTarget } from '../shared/sent-form.ts';
import { type Advice, advise, atTime, type Explanation, explained, happened, holds, type Step } from './explanation.ts';
import { type RequestSettings, requestSettingsOf, sentHeaders, settingsSteps } from './own-headers.ts';
import { receivedSteps } from './received.ts';
import { adviceOnScheduled, adviceOnWait, type DeadLetter, deadLetterText, type Goal, nextOf, repairOf, waitOf } from './wait-advice.ts';

/** Deliveries of routes, and messages to webhook endpoints. */

const maxAttemptsShown = 50;

/** Common form of both. */
interface Message extends Goal {
  id: string;
  eventId: string;
  /** As its record has it. */
  status: string;
  /** Neither delivered nor given up. */
  isUnderWay: boolean;
  isDeadLetter: boolean;
  isDelivered: boolean;
  /** Why nothing was sent; null: it was, or will be. */
  unsentFor: 'filtered' | 'schema_failed' | 'transform_failed' | null;
  attempts: number;
  maxAttempts: number;
  waitingFor: WaitReason | null;
  waitingUntilMs: number | null;
  lastErrorMessage: string | null;
  deadLetter: (DeadLetter & { atMs: number }) | null;
  cancellation?: Cancellation;
  failedOverFrom: string | null;
  failedOverAtMs: number | null;
  replayedFrom: string | null;
  createdAtMs: number;
  completedAtMs: number | null;
  /** Null: it has ended, or does not expire. */
  expiresAtMs: number | null;
}

/** Null: the organization has no such delivery or message. */
export async function explainMessage(call: Call, id: string): Promise<Explanation | null> {
  const { messages, webhookMessages } = call.services;
  const org = call.caller.organization.id;
  await call.hold(fullPayloadMemory);
  const delivery = await messages.delivery(org, id);
  if (delivery !== null) {
    const [attempts, event] = await Promise.all([messages.attempts(org, id), messages.event(org, delivery.eventId)]);
    return await story(call, fromDelivery(delivery), { attempts, event });
  }
  const sent = await webhookMessages.message(org, id);
  if (sent === null) return null;
  const inside = webhookOrganization(org);
  const [attempts, stored] = await Promise.all([webhookMessages.attempts(org, id), messages.event(inside, sent.eventId)]);
  return await story(call, fromMessage(sent), {
    attempts,
    event: stored !== null && webhookEventView(inside, stored) !== null ? stored : null,
  });
}

async function story(
  call: Call,
  message: Message,
  { attempts, event }: { attempts: AttemptView[]; event: EventView | null },
): Promise<Explanation> {
  const { id, waitingFor, waitingUntilMs, isForWebhook } = message;
  const [target, settings] = await Promise.all([
    isForWebhook ? ('endpoint' as const) : signedTarget(call, message.destinationId),
    requestSettingsOf(call, message),
  ]);
  const circuit = waitingFor === 'circuit_open' ? await circuitStep(call, message) : [];
  return explained({
    id,
    kind: isForWebhook ? 'outbound message' : 'delivery',
    state: message.status,
    summary: summaryOf(message),
    story: [
      ...(event === null ? [holds('event_gone', 'The event is no longer stored.', { eventId: message.eventId })] : receivedSteps(event)),
      queuedStep(message),
      ...attempts.slice(-maxAttemptsShown).map((attempt) => attemptStep(attempt, target, hasMoved(message, attempt) ? null : settings)),
      ...failoverSteps(message),
      ...circuit,
      ...cancelSteps(message),
      ...expirySteps(message),
      ...(message.isUnderWay ? settingsSteps(settings) : []),
      ...endSteps(message),
    ],
    waitsFor: waitingFor === null ? null : waitOf(waitingFor, waitingUntilMs),
    next: nextOf(waitingFor, { ...message, untilMs: waitingUntilMs }),
    advice: await adviceOn(call, message),
  });
}

function summaryOf(message: Message): string {
  const { waitingFor, waitingUntilMs, deadLetter, isDeadLetter, unsentFor, attempts, maxAttempts } = message;
  const noun = message.isForWebhook ? 'message' : 'delivery';
  if (isDeadLetter && deadLetter !== null) return `The ${noun} is given up. ${deadLetterText(deadLetter)}`;
  if (unsentFor !== null) return `Nothing was sent: ${unsentText(message)}`;
  if (message.isUnderWay && waitingFor !== null)
    return `The ${noun} waits after ${attempts} of ${maxAttempts} attempts. ${waitOf(waitingFor, waitingUntilMs).text}`;
  if (message.isUnderWay && message.cancellation !== undefined)
    return `The ${noun} was cancelled while an attempt was under way, or while it was in a batch. It ends then, unless that succeeds.`;
  if (message.status === 'processing') return `An attempt of the ${noun} is under way, after ${attempts} of ${maxAttempts} attempts.`;
  if (message.isUnderWay) return `The ${noun} has not ended, after ${attempts} of ${maxAttempts} attempts.`;
  if (!message.isDelivered) return `The ${noun} was archived as a dead letter. Nothing more is sent.`;
  return `The ${noun} was delivered${atTime(message.completedAtMs)} after ${attempts} of ${maxAttempts} attempts.`;
}

function unsentText({ unsentFor, destinationId, lastErrorMessage }: Message): string {
  const excluded = destinationId === null ? 'the filter of the route excluded the event' : 'the transform returned no output';
  const reasons = {
    filtered: excluded,
    schema_failed: 'the payload does not meet the schema of the route',
    transform_failed: 'the transform failed',
  };
  return `${unsentFor === null ? '' : reasons[unsentFor]}${lastErrorMessage === null ? '' : ` (${lastErrorMessage})`}.`;
}

function queuedStep({ createdAtMs, isForWebhook, routeId, destinationId, replayedFrom }: Message): Step {
  const data = isForWebhook ? { applicationId: routeId, endpointId: destinationId } : { routeId, destinationId };
  if (replayedFrom !== null)
    return happened(createdAtMs, 'replayed', `It was made as a replay of ${replayedFrom}.`, { ...data, replayedFrom });
  const by = isForWebhook ? 'A subscription of the endpoint matched the event' : 'The route took the event';
  return happened(
    createdAtMs,
    'matched',
    destinationId === null ? 'The route evaluated the event.' : `${by}, and the message was queued.`,
    data,
  );
}

/** Whether the message has failed over since the attempt. */
function hasMoved({ failedOverFrom, failedOverAtMs }: Message, { startedAtMs }: AttemptView): boolean {
  return failedOverFrom !== null && (failedOverAtMs === null || startedAtMs < failedOverAtMs);
}

/** `settings`: of the target of the attempt; null: not known. */
function attemptStep(attempt: AttemptView, target: SignedTarget | null, settings: RequestSettings | null): Step {
  const { attemptNumber, startedAtMs, durationMs, responseStatus, errorType, errorMessage, sentAs } = attempt;
  const outcome = errorType === null ? 'succeeded' : `failed (${errorType})`;
  const answer = responseStatus === null ? 'without a response' : `the receiver returned ${responseStatus}`;
  const hasDetail = errorType !== null && errorMessage !== null && errorMessage !== defaultMessage({ errorType, responseStatus });
  const said = !hasDetail ? '' : ` ${errorMessage.replace(/\.?$/, '.')}`;
  const form = sentFormStep(target, sentAs);
  const headers = sentHeaders(attempt, settings);
  const text = `Attempt ${attemptNumber} ${outcome} after ${Math.round(durationMs)} ms: ${answer}.${said}${form.text}${headers.text}`;
  return happened(startedAtMs, 'attempt', text, {
    attemptNumber,
    durationMs,
    responseStatus,
    errorType,
    errorMessage,
    ...form.data,
    ...headers.data,
  });
}

function failoverSteps({ failedOverFrom: from, failedOverAtMs, destinationId: to }: Message): Step[] {
  if (from === null) return [];
  const text = `It left the destination ${from} for the failover destination ${to ?? ''}.`;
  return [failedOverAtMs === null ? holds('failed_over', text, { from, to }) : happened(failedOverAtMs, 'failed_over', text, { from, to })];
}

async function circuitStep(call: Call, { routeId, destinationId, isForWebhook }: Message): Promise<Step[]> {
  if (destinationId === null) return [];
  const org = call.caller.organization.id;
  const [circuit] = await call.services.circuits.ofTargets(isForWebhook ? webhookOrganization(org) : org, [{ routeId, destinationId }]);
  if (circuit === undefined || circuit.openedAtMs === null) return [];
  const { consecutiveFailures, openedAtMs, lastFailure, state } = circuit;
  const text = `The circuit opened after ${consecutiveFailures} consecutive failed attempts and is ${state}.`;
  return [happened(openedAtMs, 'circuit_opened', text, { state, consecutiveFailures, lastFailure })];
}

function cancelSteps({ cancellation, isDeadLetter, isUnderWay }: Message): Step[] {
  if (cancellation === undefined) return [];
  const { atMs, by } = cancellation;
  const isRecorded = isUnderWay || !isDeadLetter;
  const what = isRecorded
    ? `${by} cancelled the message while an attempt was under way, or while it was in a batch.`
    : `${by} cancelled the message.`;
  return [happened(atMs, 'cancelled', what, { by })];
}

function expirySteps({ expiresAtMs, isUnderWay }: Message): Step[] {
  if (expiresAtMs === null || !isUnderWay) return [];
  const expiresAt = isoTime(expiresAtMs);
  return [holds('expires', `It is given up at ${expiresAt} unless it has been delivered by then.`, { expiresAt })];
}

function endSteps(message: Message): Step[] {
  const { deadLetter, isDeadLetter, unsentFor, completedAtMs, isUnderWay, isDelivered } = message;
  const steps: Step[] = [];
  if (deadLetter !== null) steps.push(happened(deadLetter.atMs, 'dead_letter', deadLetterText(deadLetter), { reason: deadLetter.reason }));
  if (isDeadLetter || isUnderWay || completedAtMs === null) return steps;
  if (unsentFor !== null) steps.push(happened(completedAtMs, unsentFor, `Nothing was sent: ${unsentText(message)}`));
  else if (!isDelivered) steps.push(happened(completedAtMs, 'archived', 'The dead letter was archived.'));
  else steps.push(happened(completedAtMs, 'delivered', 'The receiver took the message.'));
  return steps;
}

async function adviceOn(call: Call, message: Message): Promise<Advice[]> {
  const { id, isForWebhook, waitingFor, deadLetter, isDeadLetter, unsentFor, eventId } = message;
  if (waitingFor === 'scheduled') return [adviceOnScheduled(isForWebhook, { messageId: id })];
  if (waitingFor !== null) return await adviceOnWait(call, waitingFor, message);
  if (isDeadLetter && deadLetter !== null) {
    const isCancelled = deadLetter.cause === 'cancelled';
    const again = isForWebhook
      ? advise(
          isCancelled ? 'Send it again to undo the cancel.' : 'Send it again once the cause is repaired.',
          'POST',
          `/outbound-messages/dlq/${id}/retry`,
        )
      : advise(isCancelled ? 'Replay it to undo the cancel.' : 'Replay it once the cause is repaired.', 'POST', `/deliveries/${id}/replay`);
    const repairs = await repairOf(call, deadLetter, message);
    return deadLetter.reason === 'payload_not_found' ? repairs : [...repairs, again];
  }
  return unsentFor === null ? [] : [advise('Read why the event was not sent there.', 'GET', `/explain/${eventId}`)];
}

function unsentReason(said: string | null): Message['unsentFor'] {
  return said === 'filtered' || said === 'schema_failed' || said === 'transform_failed' ? said : null;
}

/** Types of the last error that are causes. */
const saidByError = ['cancelled', 'expired', 'disabled', 'gone'] as const;

function deadLetterOf(
  reason: DeadLetter['reason'],
  { attempts, maxAttempts, lastErrorType }: Pick<Message, 'attempts' | 'maxAttempts'> & { lastErrorType: string | null },
): DeadLetter {
  const said = saidByError.find((cause) => cause === lastErrorType) ?? null;
  const isRejected = reason === 'max_retries_exceeded' && attempts < maxAttempts;
  return { reason, cause: reason === 'expired' ? 'expired' : (said ?? (isRejected ? 'rejected' : null)) };
}

function fromDelivery(view: DeliveryView): Message {
  const { status, deadLetterReason: reason, completedAtMs, createdAtMs, deadSinceMs } = view;
  return {
    ...view,
    isForWebhook: false,
    isUnderWay: completedAtMs === null && status !== 'dlq',
    isDeadLetter: status === 'dlq',
    isDelivered: status === 'delivered',
    unsentFor: unsentReason(status),
    deadLetter: reason === null ? null : { ...deadLetterOf(reason, view), atMs: deadSinceMs ?? completedAtMs ?? createdAtMs },
  };
}

function fromMessage(view: WebhookMessageView): Message {
  const { status, lastErrorType, deadLetter, applicationId, endpointId, completedAtMs } = view;
  const isUnsent = status === 'exhausted' && deadLetter === null;
  return {
    ...view,
    routeId: applicationId,
    destinationId: endpointId,
    isForWebhook: true,
    isUnderWay: completedAtMs === null && status !== 'dlq',
    isDeadLetter: status === 'dlq',
    isDelivered: status === 'success',
    unsentFor: isUnsent ? unsentReason(lastErrorType) : null,
    deadLetter: deadLetter === null ? null : { ...deadLetterOf(deadLetter.reason, view), atMs: deadLetter.movedAtMs },
    failedOverFrom: null,
    failedOverAtMs: null,
  };
}
