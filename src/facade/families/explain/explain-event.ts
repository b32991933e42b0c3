import { webhookOrganization } from '../../../core/webhook.ts';
import type { DeliveryView, EventView } from '../../../data/shard/messages.ts';
import type { WaitReason } from '../../../data/shard/waits.ts';
import type { WebhookEventView, WebhookMessageView } from '../../../data/webhooks/webhook-message-view.ts';
import type { Call } from '../../http/operation.ts';
import { fullPayloadMemory } from '../../http/request-memory.ts';
import { unreachedBy } from '../messages/unreached.ts';
import { sentFormStep, signedTarget } from '../shared/sent-form.ts';
import { subscriptionsUnreachedBy } from '../webhooks/messages/unreached-subscriptions.ts';
import { type Advice, advise, counted, type Explanation, explained, happened, holds, type Step } from './explanation.ts';
import { receivedSteps } from './received.ts';
import { adviceOnScheduled, adviceOnWait, type Goal, nextOf, waitOf } from './wait-advice.ts';

/** Events of sources, and webhook events. */

const maxShown = 30;

/** Null: the organization has no such event. */
export async function explainEvent(call: Call, id: string): Promise<Explanation | null> {
  const { messages, webhookMessages } = call.services;
  const org = call.caller.organization.id;
  await call.hold(fullPayloadMemory);
  const event = await messages.event(org, id);
  if (event !== null) return await ofSource(call, event);
  const [sent, stored] = await Promise.all([webhookMessages.event(org, id), messages.event(webhookOrganization(org), id)]);
  if (sent === null || stored === null) return null;
  const unreached = await subscriptionsUnreachedBy(call, sent);
  const rows = unreached.subscriptions.slice(0, maxShown).map(({ reason, labels, expression, error, changedSince, ...ids }) => {
    const details = [
      ...labels.map(
        ({ label, expected, actual }) =>
          `the label ${label} must be ${inWords(expected)}, and the event has ${actual === null ? 'none' : inWords(actual)}`,
      ),
      ...(expression === null ? [] : [`the expression ${expression}`]),
    ];
    const text = sentence(`The endpoint ${ids.endpointId} got nothing: ${words(reason)}`, details, error, changedSince);
    return holds('not_matched', text, { ...ids, reason, changedSince });
  });
  const waiting = sent.messages.find(({ waitingFor }) => waitingFor !== null);
  const goalOf = ({ applicationId, endpointId }: WebhookMessageView): Goal => ({
    routeId: applicationId,
    destinationId: endpointId,
    isForWebhook: true,
  });
  const advice = waiting === undefined ? [] : await adviceOnFirst(call, id, waiting.waitingFor, goalOf(waiting));
  const dead = sent.messages.find(({ status }) => status === 'dlq');
  return explained({
    id,
    kind: 'webhook event',
    state: stateOfMessages(sent.messages),
    summary: `The event has ${counted(sent.event.messageCount, 'message')}, and ${counted(unreached.total, 'subscription')} to its type got nothing.`,
    story: [...receivedSteps(stored), ...sent.messages.slice(0, maxShown).map(messageStep), ...rows],
    ...waitOfFirst(waiting),
    advice: [
      ...advice,
      ...(dead === undefined ? [] : [advise('Read why the first dead letter was given up.', 'GET', `/explain/${dead.id}`)]),
      ...(sent.event.messageCount > 0 || unreached.total > 0 || sent.event.endpointIds.length > 0 ? [] : [subscribe(sent.event)]),
    ],
  });
}

async function ofSource(call: Call, event: EventView): Promise<Explanation> {
  const { id, status, deliveryCount } = event;
  const deliveries = await call.services.messages.deliveriesOfEvent(event.org, id);
  const unreached = await unreachedBy(call, event, deliveries);
  const sent = deliveries.filter(({ status: each }) => each !== 'filtered');
  const rows = unreached.routes.slice(0, maxShown).map(({ reason, conditions, error, changedSince, ...ids }) => {
    const details = conditions.flatMap(({ index, field, operator, expected, actual }) =>
      field === undefined
        ? [`condition ${index + 1} of its filter`]
        : [
            `condition ${index + 1} (${field} ${operator ?? ''}${expected === undefined ? '' : ` ${inWords(expected)}`}), and the event has ${actual === undefined ? 'no such field' : inWords(actual)}`,
          ],
    );
    return holds('not_matched', sentence(`The route ${ids.routeId} sent nothing: ${words(reason)}`, details, error, changedSince), {
      ...ids,
      reason,
      changedSince,
    });
  });
  const waiting = sent.find(({ waitingFor }) => waitingFor !== null);
  const details = await Promise.all(sent.slice(0, maxShown).map((delivery) => deliveryStep(call, delivery)));
  return explained({
    id,
    kind: 'event',
    state: status,
    summary: `${statusTexts[status]} It has ${counted(deliveryCount, 'delivery', 'deliveries')}.`,
    story: [...receivedSteps(event), ...details, ...rows],
    ...waitOfFirst(waiting),
    advice: await adviceOn(call, { event, sent, waiting, unreached: unreached.routes[0] }),
  });
}

const statusTexts: Record<EventView['status'], string> = {
  pending: 'A delivery of the event has not ended.',
  delivered: 'The event was delivered to all that did not exclude it.',
  partial: 'Some deliveries of the event failed.',
  failed: 'No delivery of the event succeeded.',
  filtered: 'Every route excluded the event.',
  no_routes: 'No route took the event.',
};

function subscribe({ typeId, applicationId }: WebhookEventView): Advice {
  const whose = applicationId === null ? 'No endpoint' : `No endpoint of the application ${applicationId}`;
  const body = { endpointId: 'ep_…', eventTypeId: typeId };
  return advise(`${whose} subscribes to the type. Subscribe one, then send the event again.`, 'POST', '/webhook-subscriptions', body);
}

interface Told {
  event: EventView;
  sent: readonly DeliveryView[];
  waiting: DeliveryView | undefined;
  /** The first route that got nothing. */
  unreached: { routeId: string; reason: string; error: string | null } | undefined;
}

async function adviceOn(call: Call, { event, sent, waiting, unreached }: Told): Promise<Advice[]> {
  if (event.status === 'no_routes')
    return [
      advise('Read the source: its explanation names the routes that it has.', 'GET', `/explain/${event.sourceId}`),
      advise('Make a route for the source. It gets later events; send this one again.', 'POST', '/routes', {
        name: 'New route',
        sourceId: event.sourceId,
        destinationIds: ['dst_…'],
      }),
    ];
  const dead = sent.find(({ status }) => status === 'dlq');
  return [
    ...(waiting === undefined ? [] : await adviceOnFirst(call, event.id, waiting.waitingFor, { ...waiting, isForWebhook: false })),
    ...(dead === undefined ? [] : [advise('Read why the first dead letter was given up.', 'GET', `/explain/${dead.id}`)]),
    ...(event.status !== 'filtered' || unreached === undefined ? [] : [changeRule(unreached)]),
  ];
}

/** Advice for the first message of an event that waits. */
async function adviceOnFirst(call: Call, eventId: string, waitingFor: WaitReason | null, goal: Goal): Promise<Advice[]> {
  if (waitingFor === null) return [];
  return waitingFor === 'scheduled' ? [adviceOnScheduled(goal.isForWebhook, { eventId })] : await adviceOnWait(call, waitingFor, goal);
}

function changeRule({ routeId, reason, error }: NonNullable<Told['unreached']>): Advice {
  if (error !== null && (reason === 'condition_false' || reason === 'no_condition_met'))
    return advise('Read the conditions of the route: they name what keeps its filter from being in force.', 'GET', `/explain/${routeId}`);
  const rule = reason === 'transform_filtered' ? 'transform' : 'filter';
  return advise(`Read the ${rule} of the route, and change it if the event should pass.`, 'GET', `/routes/${routeId}`);
}

interface Waiting {
  waitingFor: WaitReason | null;
  waitingUntilMs: number | null;
  attempts: number;
  maxAttempts: number;
}

/** What the first message that waits is waiting for, and what comes next. */
function waitOfFirst(message: Waiting | undefined): Pick<Explanation, 'waitsFor' | 'next'> {
  if (message === undefined || message.waitingFor === null) return { waitsFor: null, next: null };
  const { waitingFor, waitingUntilMs: untilMs, attempts, maxAttempts } = message;
  return { waitsFor: waitOf(waitingFor, untilMs), next: nextOf(waitingFor, { untilMs, attempts, maxAttempts }) };
}

async function deliveryStep(call: Call, delivery: DeliveryView): Promise<Step> {
  const { id, routeId, destinationId, status, attempts, createdAtMs, lastSentAs } = delivery;
  const form = attempts === 0 ? null : sentFormStep(await signedTarget(call, destinationId), lastSentAs);
  const to = destinationId === null ? '' : ` to the destination ${destinationId}`;
  return happened(
    createdAtMs,
    'delivery',
    `The route ${routeId} made a delivery${to}. It is ${statusWords.get(status) ?? words(status)} after ${counted(attempts, 'attempt')}.${form?.text ?? ''}`,
    {
      deliveryId: id,
      routeId,
      destinationId,
      status,
      ...form?.data,
    },
  );
}

function messageStep(message: WebhookMessageView): Step {
  const { id, endpointId, applicationId, subscriptionId, status, attempts, createdAtMs, lastSentAs } = message;
  const form = attempts === 0 ? null : sentFormStep('endpoint', lastSentAs);
  return happened(
    createdAtMs,
    'message',
    `A message was made for the endpoint ${endpointId}. It is ${statusWords.get(status) ?? words(status)} after ${counted(attempts, 'attempt')}.${form?.text ?? ''}`,
    {
      messageId: id,
      endpointId,
      applicationId,
      subscriptionId,
      status,
      ...form?.data,
    },
  );
}

function stateOfMessages(messages: readonly WebhookMessageView[]): string {
  if (messages.length === 0) return 'no_messages';
  const has = (...statuses: WebhookMessageView['status'][]): boolean => messages.some(({ status }) => statuses.includes(status));
  if (has('pending', 'processing', 'failed')) return 'pending';
  if (!has('dlq', 'exhausted')) return 'delivered';
  return has('success') ? 'partial' : 'failed';
}

function sentence(beginning: string, details: readonly string[], error: string | null, changedSince: boolean): string {
  const detail = [...details, ...(error === null ? [] : [error])].join('; ');
  const since = changedSince ? ' It was changed since, so another reason may have held then.' : '';
  return `${beginning}${detail === '' ? '' : ` (${detail})`}.${since}`;
}

/** `endpoint_disabled` → `endpoint disabled`. */
/** Statuses whose own word is not one of a sentence. */
const statusWords: ReadonlyMap<string, string> = new Map([
  ['dlq', 'a dead letter'],
  ['success', 'delivered'],
]);

function words(code: string): string {
  return code.replaceAll('_', ' ');
}

function inWords(value: unknown): string {
  return JSON.stringify(value);
}
