import { hash } from 'node:crypto';
import { PosthornError } from '../../../core/errors.ts';
import { newTimedId, parseTimedId } from '../../../core/ids.ts';
import { jsonSchemaText } from '../../../core/json-schema-text.ts';
import type { EventTypeRecord } from '../../../core/records.ts';
import { webhookOrganization } from '../../../core/webhook.ts';
import { type EventClaim, quotaExceeded } from '../../../data/intake.ts';
import type { NewEvent } from '../../../data/messages.ts';
import type { WebhookMatches } from '../../../data/webhooks/webhook-matcher.ts';
import { webhookTarget } from '../../../data/webhooks/webhook-target.ts';
import type { Call } from '../../operation.ts';
import type { EventAnswer, SentEvent } from './sent-event.ts';

const idempotencyMs = 86_400_000;
const defaultPayloadLimitBytes = 1024 * 1024;
const schemaDeadlineMs = 1500;
const mostProblems = 10;
const contentType = 'application/json';

export interface TakenEvent {
  answer: EventAnswer;
  /** An event with its idempotency key was taken before. */
  isRepeated: boolean;
}

/**
 * Stores an event with a message for every subscription that it matches. Throws RESOURCE_NOT_FOUND without an enabled event type of the name,
 * PAYLOAD_TOO_LARGE, VALIDATION_FAILED for a payload that breaks the schema, APPLICATION_RATE_LIMITED, QUOTA_EXCEEDED, UNAVAILABLE: then it
 * may be stored, and with an idempotency key it is not stored again when it is sent again.
 */
export async function takeWebhookEvent(call: Call, sent: SentEvent, payload: Buffer): Promise<TakenEvent> {
  const { services, caller } = call;
  const org = caller.organization.id;
  const eventType = await enabledEventType(call, sent.eventType);
  await refuseTooLarge(call, payload);
  await refuseBroken(call, eventType, payload);
  const matches = await matchesOf(call, eventType, sent);
  const receivedAtMs = services.clock.now();
  const event = eventOf(call, { sent, payload, eventType, matches, receivedAtMs });
  const { monthlyMessages } = caller.organization;
  const { idempotencyKey } = sent;
  const accept = (taken: NewEvent): Promise<boolean> => services.sending.acceptor.accept(taken);
  const answer = {
    eventId: event.id,
    messagesQueued: matches.total,
    endpoints: matches.first.map(({ endpointId: id, url }) => ({ id, url })),
  };
  if (idempotencyKey === undefined && (monthlyMessages === null || matches.total === 0)) {
    await countTargeted(call, sent, matches);
    await accept(event);
    return { answer, isRepeated: false };
  }
  const claim: EventClaim = {
    org,
    eventId: event.id,
    receivedAtMs,
    mark: idempotencyKey === undefined ? null : hash('sha256', `send-event\n${idempotencyKey}`, 'hex').slice(0, 32),
    windowMs: idempotencyMs,
    messages: matches.total,
    monthlyMessages,
  };
  const claimed = await services.intake.claim(claim);
  if (claimed.outcome === 'quotaExceeded') throw quotaExceeded(receivedAtMs, monthlyMessages ?? 0);
  if (claimed.outcome === 'duplicate') return { answer: await firstAnswer(call, claimed.eventId), isRepeated: true };
  // Whoever claimed it may have died before it was stored: whoever meets the claim stores it under that id, which happens once.
  const { eventId } = claimed;
  const isNew = await countTargeted(call, sent, matches)
    .then(() => accept(eventId === event.id ? event : renamed(event, eventId)))
    .catch(async (error: unknown) => {
      await services.intake.settle({ ...claim, eventId }, 'failed').catch(() => undefined);
      throw error;
    });
  if (claim.mark !== null) noteStored(call, { ...claim, eventId });
  return isNew ? { answer: { ...answer, eventId }, isRepeated: false } : { answer: await firstAnswer(call, eventId), isRepeated: true };
}

async function enabledEventType({ services, caller }: Call, name: string): Promise<EventTypeRecord> {
  const { registry } = services;
  const id = await registry.eventTypeIdByName(caller.organization.id, name);
  const eventType = id === null ? null : await registry.get('eventType', id);
  if (eventType === null || !eventType.enabled)
    throw new PosthornError('RESOURCE_NOT_FOUND', `There is no enabled event type of the name ${JSON.stringify(name)}.`);
  return eventType;
}

async function refuseTooLarge({ services, caller }: Call, payload: Buffer): Promise<void> {
  const organization = await services.registry.get('organization', caller.organization.id);
  const limitBytes = organization?.payloadLimitBytes ?? defaultPayloadLimitBytes;
  if (payload.length > limitBytes)
    throw new PosthornError('PAYLOAD_TOO_LARGE', `The payload has ${payload.length} bytes; the plan allows ${limitBytes}.`);
}

async function refuseBroken({ services, caller }: Call, { name, schema }: EventTypeRecord, payload: Buffer): Promise<void> {
  if (schema === null) return;
  const text = jsonSchemaText(JSON.parse(schema)) ?? schema;
  const signal = AbortSignal.timeout(schemaDeadlineMs);
  const [problems = []] = await services.sandbox.validate(caller.organization.id, [text], payload, { mostProblems, signal });
  if (problems.length === 0) return;
  const details = { payload: problems.map(({ path, message }) => (path === '' ? message : `${path} ${message}`)) };
  throw new PosthornError('VALIDATION_FAILED', `The payload breaks the schema of ${name}.`, { details });
}

async function matchesOf(call: Call, eventType: EventTypeRecord, sent: SentEvent): Promise<WebhookMatches> {
  const { services, caller } = call;
  const { applicationId = null, labels = {}, metadata = {} } = sent;
  const narrowing = { applicationId, endpointIds: endpointsOf(sent) };
  const event = { type: eventType.name, data: sent.payload, labels: textLabels(labels), metadata };
  const matches = await services.sending.matcher.match(caller.organization.id, eventType.id, narrowing, event);
  if (matches.total === 0) await refuseUnknown(call, narrowing);
  return matches;
}

/** A target that is not there is a mistake of the sender's; one that wants no such events is none. */
async function refuseUnknown(
  { services, caller }: Call,
  { applicationId, endpointIds }: { applicationId: string | null; endpointIds: string[] },
) {
  const { webhooks } = services;
  const org = caller.organization.id;
  if (applicationId !== null && (await webhooks.application(org, applicationId)) === null)
    throw new PosthornError('RESOURCE_NOT_FOUND', `There is no application ${applicationId}.`);
  if (endpointIds.length === 0) return;
  const found = await webhooks.endpointsById(org, endpointIds);
  const missing = endpointIds.find((id) => !found.has(id));
  if (missing !== undefined) throw new PosthornError('RESOURCE_NOT_FOUND', `There is no endpoint ${missing}.`);
}

function endpointsOf({ endpointId, endpointIds = [] }: SentEvent): string[] {
  return [...new Set(endpointId === undefined ? endpointIds : [endpointId, ...endpointIds])];
}

function textLabels(labels: Readonly<Record<string, string | number | boolean>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, String(value)]));
}

async function countTargeted({ services }: Call, sent: SentEvent, { first, total }: WebhookMatches): Promise<void> {
  if (sent.applicationId === undefined && endpointsOf(sent).length === 0) return;
  const byApplication = Map.groupBy(first, ({ applicationId }) => applicationId);
  for (const [applicationId, group] of byApplication) {
    const count = byApplication.size === 1 ? total : group.length;
    const limits = group[0]?.applicationLimits;
    if (limits !== undefined) await services.sending.targetedSends.count(applicationId, count, limits);
  }
}

interface EventParts {
  sent: SentEvent;
  payload: Buffer;
  eventType: EventTypeRecord;
  matches: WebhookMatches;
  receivedAtMs: number;
}

function eventOf({ services, caller }: Call, { sent, payload, eventType, matches, receivedAtMs }: EventParts): NewEvent {
  const { maxAttempts } = services.sending;
  const { labels = {}, metadata = {}, idempotencyKey = null, applicationId = null } = sent;
  return {
    id: newTimedId('evt_', matches.first[0]?.shard ?? 0, receivedAtMs),
    org: webhookOrganization(caller.organization.id),
    sourceId: eventType.id,
    sourceSlug: eventType.name,
    receivedAtMs,
    method: 'POST',
    contentType,
    headers: [],
    payload,
    signatureValid: null,
    duplicateOf: null,
    webhook: { labels: textLabels(labels), metadata, idempotencyKey, applicationId, endpointIds: endpointsOf(sent), total: matches.total },
    targets: matches.first.map((match) => webhookTarget(match, { messageId: newTimedId('msg_', match.shard, receivedAtMs), maxAttempts })),
    ...(matches.rest !== null && { further: matches.rest }),
    filtered: [],
  };
}

/** The same event under the id of a claim, in the shard that it names. */
function renamed(event: NewEvent, id: string): NewEvent {
  const known = parseTimedId(id);
  return known === null ? event : { ...event, id };
}

/** What was answered to the event when it was stored; endpoints that are deleted since then are left out. */
async function firstAnswer({ services, caller }: Call, eventId: string): Promise<EventAnswer> {
  const org = caller.organization.id;
  const inside = webhookOrganization(org);
  const [event, messages] = await Promise.all([
    services.messages.event(inside, eventId),
    services.messages.deliveriesOfEvent(inside, eventId),
  ]);
  const ids = messages.flatMap(({ destinationId, replayedFrom }) =>
    destinationId === null || replayedFrom !== null ? [] : [destinationId],
  );
  const known = await services.webhooks.endpointsById(org, ids);
  const endpoints = ids.flatMap((id) => {
    const endpoint = known.get(id);
    return endpoint === undefined ? [] : [{ id, url: endpoint.url }];
  });
  return { eventId, messagesQueued: event?.webhook?.total ?? ids.length, endpoints };
}

/** The sender need not wait for it; and who meets a claim that is not settled finds out by itself. */
function noteStored({ services }: Call, claim: EventClaim): void {
  services.intake.settle(claim, 'stored').catch((error: unknown) => {
    services.logger.debug({ err: error, eventId: claim.eventId }, 'what has become of an event was not noted');
  });
}
