import { z } from 'zod';
import { unmetLabels } from '../../../../core/label-filters.ts';
import { readLargePayload } from '../../../../core/large-json.ts';
import { throwIfAbandoned } from '../../../../core/loop-turns.ts';
import { type EventMatcher, filtersTakeTooLong, SubscriptionMatcher } from '../../../../data/webhooks/subscription-matcher.ts';
import type { WebhookEventView, WebhookMessageView } from '../../../../data/webhooks/webhook-message-view.ts';
import type { WebhookApplication, WebhookEndpoint, WebhookSubscription } from '../../../../data/webhooks/webhooks.ts';
import type { Call } from '../../../http/operation.ts';
import { shortened } from '../../messages/unreached.ts';

/** Why subscriptions to the type of an event did not receive it. No reason is stored: today's rules evaluate the event. */

const maxShown = 100;
const maxScanned = 1000;
const subscriptionsPerRead = 100;
/** A list that is narrowed to an application has short pages. */
const maxReads = 40;
const endpointsAtOnce = 10;
const maxLabels = 3;
const maxLabelValues = 5;

const reason = z.enum([
  'created_after',
  'no_subscription',
  'other_application',
  'subscription_disabled',
  'endpoint_disabled',
  'application_disabled',
  'label_mismatch',
  'expression_false',
  'expression_failed',
  'not_judged',
  'transform_filtered',
  'transform_failed',
  'matches_now',
]);
type Reason = z.infer<typeof reason>;

const label = z.object({
  label: z.string().describe('Its key.'),
  expected: z.union([z.string(), z.array(z.string())]).describe('Its value, or one of the first 5.'),
  actual: z.string().nullable().describe('Of the event; null: none.'),
});

const subscription = z.object({
  subscriptionId: z.string().nullable().describe('Its id.'),
  endpointId: z.string().describe('Its endpoint.'),
  applicationId: z.string().describe('Its application.'),
  messageId: z.string().nullable().describe('Its message.'),
  reason: reason.describe('Why.'),
  labels: z.array(label).describe('The unmet one, or 3 of those unmet.'),
  expression: z.string().nullable().describe('The expression that was not met.'),
  error: z.string().nullable().describe('In words.'),
  changedSince: z.boolean().describe('Changed after the event: it may have been another reason then.'),
});
type Row = z.input<typeof subscription>;

export const unreachedSubscriptions = z
  .object({
    total: z.int().describe('How many.'),
    byReason: z.record(z.string(), z.int()).describe('How many of each.'),
    subscriptions: z.array(subscription).describe('The first 100, newest first.'),
    scanned: z.int().describe('Subscriptions read; at most 1,000.'),
    isComplete: z.boolean().describe('All were read.'),
  })
  .describe('Subscriptions that got nothing, by the rules of today.');

export interface FoundEvent {
  event: WebhookEventView;
  /** Null: it is not read here, or no longer stored. */
  payload: Buffer | null;
  /** At most the first 1,000. */
  messages: readonly WebhookMessageView[];
}

interface Candidate {
  /** Null: the endpoint does not subscribe. */
  subscription: WebhookSubscription | null;
  endpoint: WebhookEndpoint;
  application: WebhookApplication;
}

/** Reads at most 1,000 subscriptions. Rejects with AbandonedError once the client has hung up. */
export async function subscriptionsUnreachedBy(call: Call, found: FoundEvent): Promise<z.input<typeof unreachedSubscriptions>> {
  const { event, messages } = found;
  const { candidates, isComplete } = await candidatesOf(call, event);
  const matcher = await matcherOf(call, found);
  const byEndpoint = Map.groupBy(messages, ({ endpointId }) => endpointId);
  const knowsAllMessages = event.messageCount <= messages.length;
  const byReason: Partial<Record<Reason, number>> = {};
  const rows: Row[] = [];
  for (const candidate of candidates) {
    await call.turn.rest();
    throwIfAbandoned(call.signal);
    const own = byEndpoint.get(candidate.endpoint.id);
    const row = own === undefined ? await rowOf(candidate, event, matcher, knowsAllMessages) : rowOfMessages(candidate, own);
    if (row === null) continue;
    byReason[row.reason] = (byReason[row.reason] ?? 0) + 1;
    if (rows.length < maxShown) rows.push(row);
  }
  const total = Object.values(byReason).reduce((sum, count) => sum + count, 0);
  return { total, byReason, subscriptions: rows, scanned: candidates.length, isComplete: isComplete && knowsAllMessages };
}

/** Messages of the event, as far as they are shown: of the endpoints or the application that it is narrowed to, or of its type. */
async function candidatesOf(call: Call, event: WebhookEventView): Promise<{ candidates: Candidate[]; isComplete: boolean }> {
  if (event.endpointIds.length > 0) return { candidates: await ofEndpoints(call, event), isComplete: true };
  const { webhooks } = call.services;
  const org = call.caller.organization.id;
  const filter = { eventTypeId: event.typeId, applicationId: event.applicationId ?? undefined };
  const candidates: Candidate[] = [];
  let cursor: string | undefined;
  for (let reads = 0; reads < maxReads && candidates.length < maxScanned; reads++) {
    const limit = Math.min(subscriptionsPerRead, maxScanned - candidates.length);
    const { items, nextCursor } = await webhooks.subscriptions(org, filter, { limit, ...(cursor !== undefined && { cursor }) });
    candidates.push(...(await withParents(call, items)));
    if (nextCursor === null) return { candidates, isComplete: true };
    cursor = nextCursor;
  }
  return { candidates, isComplete: false };
}

/** Records deleted meanwhile are left out. */
async function withParents({ services, caller }: Call, subscriptions: readonly WebhookSubscription[]): Promise<Candidate[]> {
  const org = caller.organization.id;
  const ids = (of: 'endpointId' | 'applicationId') => [...new Set(subscriptions.map((each) => each[of]))];
  const [endpoints, applications] = await Promise.all([
    services.webhooks.endpointsById(org, ids('endpointId')),
    services.webhooks.applicationsById(org, ids('applicationId')),
  ]);
  return subscriptions.flatMap((subscription) => {
    const endpoint = endpoints.get(subscription.endpointId);
    const application = applications.get(subscription.applicationId);
    return endpoint === undefined || application === undefined ? [] : [{ subscription, endpoint, application }];
  });
}

async function ofEndpoints({ services, caller }: Call, { typeId, endpointIds }: WebhookEventView): Promise<Candidate[]> {
  const org = caller.organization.id;
  const endpoints = [...(await services.webhooks.endpointsById(org, [...new Set(endpointIds)])).values()];
  const applications = await services.webhooks.applicationsById(org, [...new Set(endpoints.map((each) => each.applicationId))]);
  const candidates: Candidate[] = [];
  for (let i = 0; i < endpoints.length; i += endpointsAtOnce) {
    const found = endpoints.slice(i, i + endpointsAtOnce).map(async (endpoint): Promise<Candidate[]> => {
      const { items } = await services.webhooks.subscriptions(org, { endpointId: endpoint.id, eventTypeId: typeId }, { limit: 1 });
      const application = applications.get(endpoint.applicationId);
      return application === undefined ? [] : [{ subscription: items[0] ?? null, endpoint, application }];
    });
    candidates.push(...(await Promise.all(found)).flat());
  }
  return candidates;
}

/** Null: a message was sent, or will be. */
function rowOfMessages(candidate: Candidate, messages: readonly WebhookMessageView[]): Row | null {
  const reasons = messages.map(reasonOfMessage);
  const [first = null] = reasons;
  if (first === null || reasons.includes(null)) return null;
  const [message] = messages;
  const text = first === 'transform_filtered' || first === 'transform_failed' ? message?.lastErrorMessage : null;
  return { ...rowWith(candidate, first, text ?? null), messageId: message?.id ?? null };
}

function reasonOfMessage({ status, lastErrorType, attempts, waitingFor }: WebhookMessageView): Reason | null {
  if (status === 'exhausted' && lastErrorType === 'filtered') return 'transform_filtered';
  if (status === 'exhausted' && lastErrorType === 'transform_failed') return 'transform_failed';
  const isPaused = waitingFor === 'endpoint_disabled' || waitingFor === 'application_disabled';
  return attempts === 0 && isPaused ? waitingFor : null;
}

/** Null: where not all messages are known, it may have got one. */
async function rowOf(candidate: Candidate, event: WebhookEventView, matcher: MatchRow, knowsAllMessages: boolean): Promise<Row | null> {
  const { subscription, endpoint, application } = candidate;
  const isLater = ({ updatedAtMs }: { updatedAtMs: number }): boolean => updatedAtMs >= event.createdAtMs;
  const matched = await matchedRow(candidate, event, matcher);
  // What did not exist then cannot have had another reason.
  const changedSince =
    matched.reason !== 'created_after' && [subscription, endpoint, application].some((each) => each !== null && isLater(each));
  const row = { ...matched, changedSince };
  const isSure = row.reason !== 'matches_now' && !changedSince;
  return knowsAllMessages || isSure ? row : null;
}

async function matchedRow(candidate: Candidate, event: WebhookEventView, matcher: MatchRow): Promise<Row> {
  const { subscription, endpoint, application } = candidate;
  if (event.applicationId !== null && event.applicationId !== endpoint.applicationId) return rowWith(candidate, 'other_application');
  if (subscription === null) return rowWith(candidate, 'no_subscription');
  if (subscription.createdAtMs > event.createdAtMs) return rowWith(candidate, 'created_after');
  if (!subscription.isEnabled) return rowWith(candidate, 'subscription_disabled');
  if (endpoint.isDisabled) return rowWith(candidate, 'endpoint_disabled', endpoint.disabledReason);
  if (application.isDisabled) return rowWith(candidate, 'application_disabled', application.disabledReason);
  return await matcher(candidate, subscription);
}

type MatchRow = (candidate: Candidate, subscription: WebhookSubscription) => Promise<Row>;

/** Evaluates like an event that is sent: within the same bounds of work. */
async function matcherOf(call: Call, { event, payload }: FoundEvent): Promise<MatchRow> {
  const { labels, metadata, typeName: type } = event;
  let matcher: EventMatcher | null = null;
  const matcherOfPayload = async (whole: Buffer): Promise<EventMatcher> => {
    const data = await call.turn.run(readLargePayload(whole), call.signal);
    return new SubscriptionMatcher().of({ type, data, labels, metadata }, call.turn, call.signal);
  };
  return async (candidate, subscription) => {
    const { filterExpression, labelFilters, labelFilterMode } = subscription;
    const unmet = unmetLabels(labelFilters, labelFilterMode, labels);
    if (unmet.length > 0) return { ...rowWith(candidate, 'label_mismatch'), labels: unmet.slice(0, maxLabels).map(shownLabel) };
    if (filterExpression === null) return rowWith(candidate, 'matches_now');
    const withExpression = { expression: filterExpression };
    if (payload === null) return { ...rowWith(candidate, 'not_judged', 'the payload is not read here'), ...withExpression };
    matcher ??= await matcherOfPayload(payload);
    const waiting = matcher.before(subscription);
    if (waiting !== null) await waiting;
    const { isMatch, error } = matcher.match(subscription);
    if (isMatch) return rowWith(candidate, 'matches_now');
    const why = error === null ? 'expression_false' : error === filtersTakeTooLong ? 'not_judged' : 'expression_failed';
    return { ...rowWith(candidate, why, error), ...withExpression };
  };
}

function shownLabel({ label: key, expected, actual }: ReturnType<typeof unmetLabels>[number]): Row['labels'][number] {
  return {
    label: key,
    expected: typeof expected === 'string' ? shortened(expected) : expected.slice(0, maxLabelValues).map(shortened),
    actual: actual === null ? null : shortened(actual),
  };
}

function rowWith({ subscription, endpoint }: Candidate, why: Reason, error: string | null = null): Row {
  return {
    subscriptionId: subscription?.id ?? null,
    endpointId: endpoint.id,
    applicationId: endpoint.applicationId,
    messageId: null,
    reason: why,
    labels: [],
    expression: null,
    error,
    changedSince: false,
  };
}
