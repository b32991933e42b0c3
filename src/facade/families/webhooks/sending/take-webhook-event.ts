import { notBefore } from '../../../../core/delivery-time.ts';
import { PosthornError } from '../../../../core/errors.ts';
import { smallestExpiry } from '../../../../core/expiry.ts';
import { hopHeader, hopOfRequest } from '../../../../core/hops.ts';
import { newTimedId } from '../../../../core/ids.ts';
import { jsonSchemaText } from '../../../../core/json-schema-text.ts';
import { parseJson } from '../../../../core/read-json.ts';
import type { EventTypeRecord } from '../../../../core/records.ts';
import { webhookOrganization } from '../../../../core/webhook.ts';
import { type EventClaim, quotaExceeded } from '../../../../data/intake/intake.ts';
import type { NewEvent, WebhookEventPart } from '../../../../data/shard/messages.ts';
import { homeShard } from '../../../../data/shard/record-key.ts';
import type { TargetedSend } from '../../../../data/webhooks/targeted-sends.ts';
import type { WebhookMatches } from '../../../../data/webhooks/webhook-matcher.ts';
import { webhookTarget } from '../../../../data/webhooks/webhook-target.ts';
import type { Call } from '../../../http/operation.ts';
import { labelTexts } from '../shared/sent-labels.ts';
import { answerBefore, answerToKeep, firstAnswer, idempotencyMs, webhookEventDedupKey } from './repeated-event.ts';
import type { EventAnswer, SentEvent } from './sent-event.ts';
import { type StoringTurn, unordered } from './storing-order.ts';

const defaultPayloadLimitBytes = 1024 * 1024;
const schemaDeadlineMs = 1500;
const maxProblems = 10;
const contentType = 'application/json';

export interface TakenEvent {
  answer: EventAnswer;
  /** An event with its idempotency key was taken before. */
  isRepeated: boolean;
}

/**
 * Stores an event with a message for every subscription that it matches; an event stored before gets the same response, whatever has changed since.
 * `place`: index in the request; `turn`: order among its events. Throws RESOURCE_NOT_FOUND without an enabled event type of the name, and for a missing target,
 * PAYLOAD_TOO_LARGE, VALIDATION_FAILED for a payload that breaks the schema, FORBIDDEN for too many hops, APPLICATION_RATE_LIMITED, QUOTA_EXCEEDED, QUEUE_FULL, UNAVAILABLE: then it
 * may be stored, and with an idempotency key it is not stored again when it is sent again.
 */
export async function takeWebhookEvent(
  call: Call,
  sent: SentEvent,
  payload: Buffer,
  { place, turn }: { place: number; turn: StoringTurn } = { place: 0, turn: unordered },
): Promise<TakenEvent> {
  const { services, caller } = call;
  const org = caller.organization.id;
  const hop = hopOfRequest(call.sentHop);
  const mark = webhookEventDedupKey(call, sent, place);
  const repeated = (answered: EventAnswer): TakenEvent => ({ answer: answered, isRepeated: sent.idempotencyKey !== undefined });
  const before = await answerBefore(call, mark);
  if (before !== null) return repeated(before);
  const eventType = await enabledEventType(call, sent.eventType);
  await refuseTooLarge(call, payload);
  await refuseBroken(call, eventType, payload);
  const receivedAtMs = services.clock.now();
  const notBeforeMs = notBefore(sent, receivedAtMs);
  const webhook = webhookPart(sent, eventType);
  const matches = await matchesOf(call, eventType, { webhook, data: sent.payload, mark });
  const event = eventOf(call, { webhook, payload, eventType, matches, receivedAtMs, notBeforeMs, hop });
  const { monthlyMessages } = caller.organization;
  const count = (): Promise<void> => turn.begin('count', () => countTargeted(call, webhook, matches));
  const accept = (taken: NewEvent): Promise<boolean> => turn.store(homeShard(taken.id) ?? 0, () => services.sending.acceptor.accept(taken));
  const answer = {
    eventId: event.id,
    messagesQueued: matches.total,
    endpoints: matches.first.map(({ endpointId: id, url }) => ({ id, url })),
  };
  if (mark === null && (monthlyMessages === null || matches.total === 0)) {
    await count();
    await accept(event);
    return { answer, isRepeated: false };
  }
  const claim: EventClaim = {
    org,
    eventId: event.id,
    receivedAtMs,
    marks: mark === null ? [] : [mark],
    windowMs: idempotencyMs,
    messages: matches.total,
    monthlyMessages,
  };
  const claimed = await turn.begin('claim', () => services.intake.claim(claim));
  if (claimed.outcome === 'quotaExceeded') throw quotaExceeded(receivedAtMs, monthlyMessages ?? 0);
  if (claimed.outcome === 'duplicate') return repeated(await firstAnswer(call, claimed.eventId));
  // The process that claimed it may have died before it was stored. The one that meets the claim stores it under that id, which happens once.
  const { eventId } = claimed;
  const isNew = await count()
    .then(() => accept({ ...event, id: eventId, ...(mark !== null && { answer: answerToKeep(answer) }) }))
    .catch(async (error: unknown) => {
      await services.intake.settle({ ...claim, eventId }, 'failed').catch(() => undefined);
      throw error;
    });
  if (mark !== null) noteStored(call, { ...claim, eventId });
  return isNew ? { answer: { ...answer, eventId }, isRepeated: false } : repeated(await firstAnswer(call, eventId));
}

async function enabledEventType({ services, caller }: Call, name: string): Promise<EventTypeRecord> {
  const { registry } = services;
  const id = await registry.eventTypeIdByName(caller.organization.id, name);
  const eventType = id === null ? null : await registry.getOf(caller.organization.id, 'eventType', id);
  if (eventType === null || !eventType.enabled)
    throw new PosthornError('RESOURCE_NOT_FOUND', `There is no enabled event type named ${JSON.stringify(name)}.`);
  return eventType;
}

async function refuseTooLarge({ services, caller }: Call, payload: Buffer): Promise<void> {
  const organization = await services.registry.get('organization', caller.organization.id);
  const limitBytes = organization?.payloadLimitBytes ?? defaultPayloadLimitBytes;
  if (payload.length > limitBytes)
    throw new PosthornError('PAYLOAD_TOO_LARGE', `The payload has ${payload.length} bytes; the plan allows ${limitBytes}.`);
}

async function refuseBroken({ services, caller, signal: hungUp }: Call, { name, schema }: EventTypeRecord, payload: Buffer): Promise<void> {
  if (schema === null) return;
  const text = jsonSchemaText(parseJson(schema)) ?? schema;
  const signal = AbortSignal.any([hungUp, AbortSignal.timeout(schemaDeadlineMs)]);
  const [problems = []] = await services.sandbox.validate({ organization: caller.organization.id }, [text], payload, {
    maxProblems,
    signal,
  });
  if (problems.length === 0) return;
  const details = { payload: problems.map(({ path, message }) => (path === '' ? message : `${path} ${message}`)) };
  throw new PosthornError('VALIDATION_FAILED', `The payload breaks the schema of ${name}.`, { details });
}

/** Stored fields of a sent event beside its payload. */
function webhookPart(sent: SentEvent, eventType: EventTypeRecord): WebhookEventPart {
  const { metadata = {}, idempotencyKey = null, applicationId = null, endpointId, endpointIds = [] } = sent;
  const expiresAfterSeconds = smallestExpiry(sent.expiresAfterSeconds, eventType.expiresAfterSeconds);
  return {
    labels: labelTexts(sent.labels),
    metadata,
    idempotencyKey,
    applicationId,
    endpointIds: [...new Set(endpointId === undefined ? endpointIds : [endpointId, ...endpointIds])],
    ...(expiresAfterSeconds !== undefined && { expiresAfterSeconds }),
  };
}

interface MatchedEvent {
  webhook: WebhookEventPart;
  data: unknown;
  mark: string | null;
}

/** Throws QUOTA_EXCEEDED when more of them are found than the organization may queue in this month; without such a limit not all need be counted. */
async function matchesOf(call: Call, { id, name }: EventTypeRecord, { webhook, data, mark }: MatchedEvent): Promise<WebhookMatches> {
  const { services, caller, signal } = call;
  const { id: org, monthlyMessages } = caller.organization;
  const { labels, metadata } = webhook;
  const event = { type: name, data, labels, metadata };
  const known = await services.sending.matcher.match(org, id, webhook, event, { mustCount: monthlyMessages !== null, signal });
  let { total } = known;
  if (monthlyMessages !== null && !known.isCounted) {
    const receivedAtMs = services.clock.now();
    const left = await services.intake.remainder({ org, receivedAtMs, mark, windowMs: idempotencyMs, monthlyMessages });
    const atMost = left.messages;
    total = await services.sending.counter.total({ org, eventTypeId: id, narrowing: webhook, event, known, atMost, signal });
    if (total > atMost) {
      left.refused();
      throw quotaExceeded(receivedAtMs, monthlyMessages);
    }
  }
  const matches = { ...known, total };
  const matched = new Set(matches.first.map(({ endpointId }) => endpointId));
  const endpointIds = webhook.endpointIds.filter((each) => !matched.has(each));
  await refuseUnknown(call, { applicationId: matches.total === 0 ? webhook.applicationId : null, endpointIds });
  return matches;
}

/** A missing target is an error of the sender; a target without a subscription to such events is not. */
async function refuseUnknown(
  { services, caller }: Call,
  { applicationId, endpointIds }: Pick<WebhookEventPart, 'applicationId' | 'endpointIds'>,
): Promise<void> {
  const { webhooks } = services;
  const org = caller.organization.id;
  if (applicationId !== null && (await webhooks.application(org, applicationId)) === null)
    throw new PosthornError('RESOURCE_NOT_FOUND', `There is no application ${applicationId}.`);
  if (endpointIds.length === 0) return;
  const found = await webhooks.endpointsById(org, endpointIds);
  const missing = endpointIds.find((id) => !found.has(id));
  if (missing !== undefined) throw new PosthornError('RESOURCE_NOT_FOUND', `There is no endpoint ${missing}.`);
}

async function countTargeted({ services, caller }: Call, webhook: WebhookEventPart, { first, total }: WebhookMatches): Promise<void> {
  if (webhook.applicationId === null && webhook.endpointIds.length === 0) return;
  const groups = [...Map.groupBy(first, ({ applicationId }) => applicationId).values()];
  const sends = groups.flatMap((group): TargetedSend[] => {
    const [match] = group;
    if (match === undefined) return [];
    return [{ applicationId: match.applicationId, messages: groups.length === 1 ? total : group.length, limits: match.applicationLimits }];
  });
  await services.sending.targetedSends.count(caller.organization.id, sends);
}

interface EventParts {
  webhook: WebhookEventPart;
  payload: Buffer;
  eventType: EventTypeRecord;
  matches: WebhookMatches;
  receivedAtMs: number;
  notBeforeMs: number | null;
  hop: number | null;
}

function eventOf({ services, caller }: Call, parts: EventParts): NewEvent {
  const { webhook, payload, eventType, matches, receivedAtMs, notBeforeMs, hop } = parts;
  const { maxAttempts } = services.sending;
  const common = { maxAttempts, notBeforeMs, receivedAtMs, expiresAfterSeconds: webhook.expiresAfterSeconds };
  return {
    id: newTimedId('evt_', matches.first[0]?.shard ?? 0, receivedAtMs),
    org: webhookOrganization(caller.organization.id),
    sourceId: eventType.id,
    sourceSlug: eventType.name,
    receivedAtMs,
    method: 'POST',
    contentType,
    headers: hop === null ? [] : [[hopHeader, String(hop)]],
    payload,
    signatureValid: null,
    duplicateOf: null,
    ...(notBeforeMs !== null && { notBeforeMs }),
    webhook: { ...webhook, total: matches.total },
    targets: matches.first.map((match) => webhookTarget(match, { messageId: newTimedId('msg_', match.shard, receivedAtMs), ...common })),
    ...(matches.rest !== null && { further: matches.rest }),
    invalid: [],
    filtered: [],
  };
}

/** The sender need not wait for it; and who meets a claim that is not settled finds out by itself. */
function noteStored({ services }: Call, claim: EventClaim): void {
  services.intake.settle(claim, 'stored').catch((error: unknown) => {
    services.logger.debug({ err: error, eventId: claim.eventId }, 'the result of an event was not recorded');
  });
}
