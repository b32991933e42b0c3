import { webhookOrganization } from '../../../core/webhook.ts';
import type { WebhookApplication, WebhookEndpoint, WebhookSubscription } from '../../../data/webhooks/webhooks.ts';
import type { Call } from '../../http/operation.ts';
import { isoTime, isoTimeOrNull } from '../../records/record-fields.ts';
import { enableApplication, enableEndpoint, enableSubscription } from './enable.ts';
import { type Advice, advise, counted, type Explanation, explained, happened, holds, type Step } from './explanation.ts';
import { monthOfOrganization } from './month.ts';
import { circuitStep, lastSteps, probeOf } from './traffic.ts';
import { adviceOnWait } from './wait-advice.ts';

/** Applications, endpoints and subscriptions of webhook customers. */

export async function explainApplication(call: Call, id: string): Promise<Explanation | null> {
  const org = call.caller.organization.id;
  const application = await call.services.webhooks.application(org, id);
  if (application === null) return null;
  const endpoints = (await call.services.webhooks.endpointCounts(org, [id])).get(id) ?? 0;
  const state = application.isDisabled ? 'disabled' : 'ready';
  return explained({
    id,
    kind: 'application',
    state,
    summary: `The application "${application.name}" is ${state}, and has ${counted(endpoints, 'endpoint')}.`,
    story: [
      ...changeSteps('application', application),
      ...disabledSteps('application', application),
      managerStep(application),
      holds('used_by', `It has ${counted(endpoints, 'endpoint')}.`, { endpoints }),
    ],
    advice: application.isDisabled ? [enableApplication(application)] : [],
  });
}

export async function explainEndpoint(call: Call, id: string): Promise<Explanation | null> {
  const { services, caller } = call;
  const org = caller.organization.id;
  const endpoint = await services.webhooks.endpoint(org, id);
  if (endpoint === null) return null;
  const inside = webhookOrganization(org);
  const target = { routeId: endpoint.applicationId, destinationId: id };
  const application = await services.webhooks.application(org, endpoint.applicationId);
  const [subscriptionCounts, totals, circuits, backlog, month] = await Promise.all([
    services.webhooks.subscriptionCountsOfEndpoints(org, [id]),
    services.messages.destinationCounters(inside, id),
    services.circuits.ofTargets(inside, [target]),
    application === null ? [] : backlogSteps(call, endpoint, application),
    monthOfOrganization(call),
  ]);
  const subscriptions = subscriptionCounts.get(id) ?? 0;
  const isApplicationDisabled = application?.isDisabled === true;
  const [circuit] = circuits.filter(({ state }) => state !== 'closed');
  const state = endpoint.isDisabled || isApplicationDisabled ? 'disabled' : 'ready';
  const { deliveries, successes, lastDeliveryAtMs } = totals;
  return explained({
    id,
    kind: 'endpoint',
    state,
    summary: `The endpoint is ${state}, its circuit is ${circuit?.state ?? 'closed'}, and it has ${counted(subscriptions, 'subscription')}.`,
    story: [
      ...changeSteps('endpoint', endpoint),
      ...disabledSteps('endpoint', endpoint),
      ...(isApplicationDisabled
        ? [holds('application_disabled', 'Its application is disabled.', { applicationId: endpoint.applicationId })]
        : []),
      managerStep(endpoint),
      holds('used_by', `It has ${counted(subscriptions, 'subscription')}.`, { subscriptions }),
      holds('messages', `Ended messages to it: ${deliveries}, with success: ${successes}.`, {
        deliveries,
        successes,
        lastDeliveryAt: isoTimeOrNull(lastDeliveryAtMs),
      }),
      ...backlog,
      ...lastSteps(circuits),
      ...(circuit === undefined ? [holds('circuit', 'Its circuit is closed.')] : [circuitStep(circuit)]),
      ...(month === null ? [] : [month.step]),
    ],
    next: circuit === undefined ? null : probeOf(circuit),
    advice: [
      ...(endpoint.isDisabled ? [enableEndpoint(endpoint)] : []),
      ...(application?.isDisabled === true ? [enableApplication(application)] : []),
      ...(circuit === undefined ? [] : await adviceOnWait(call, 'circuit_open', { ...target, isForWebhook: true })),
      ...(subscriptions > 0 ? [] : [{ text: 'Make a subscription: without one, the endpoint gets no event.' }]),
      ...(month?.advice ?? []),
    ],
  });
}

async function backlogSteps(
  { services, caller }: Call,
  { id, applicationId }: WebhookEndpoint,
  { shard }: Pick<WebhookApplication, 'shard'>,
): Promise<Step[]> {
  const { messages, scheduled, oldestAtMs } = await services.webhookStatistics.waiting(caller.organization.id, {
    id,
    applicationId,
    shard,
  });
  const oldest = oldestAtMs === null ? '' : `, the oldest of those that are due since ${isoTime(oldestAtMs)}`;
  const text = `Messages not ended: ${messages}${oldest}; scheduled for later: ${scheduled}.`;
  return [holds('backlog', text, { messages, scheduled, oldestAt: isoTimeOrNull(oldestAtMs) })];
}

export async function explainSubscription(call: Call, id: string): Promise<Explanation | null> {
  const org = call.caller.organization.id;
  const { webhooks } = call.services;
  const subscription = await webhooks.subscription(org, id);
  if (subscription === null) return null;
  const { endpointId, applicationId, eventTypeId, isEnabled, filterExpression, labelFilters, lastFilterError } = subscription;
  const [endpoint, application] = await Promise.all([webhooks.endpoint(org, endpointId), webhooks.application(org, applicationId)]);
  const isBelowDisabled = endpoint?.isDisabled === true || application?.isDisabled === true;
  const state = isEnabled && !isBelowDisabled ? 'ready' : 'disabled';
  const filters = [...(Object.keys(labelFilters).length > 0 ? ['labels'] : []), ...(filterExpression === null ? [] : ['an expression'])];
  return explained({
    id,
    kind: 'subscription',
    state,
    summary: `The subscription of the endpoint ${endpointId} to the event type ${eventTypeId} is ${state}.`,
    story: [
      ...changeSteps('subscription', subscription),
      ...(isEnabled ? [] : [holds('disabled', 'The subscription is disabled: it matches no event.')]),
      ...(endpoint?.isDisabled === true ? [holds('endpoint_disabled', 'Its endpoint is disabled.', { endpointId })] : []),
      ...(application?.isDisabled === true ? [holds('application_disabled', 'Its application is disabled.', { applicationId })] : []),
      holds(
        'matches',
        filters.length === 0 ? 'It matches every event of the type.' : `It filters events of the type by ${filters.join(' and ')}.`,
        { eventTypeId, labelFilters, filterExpression },
      ),
      ...(lastFilterError === null ? [] : [holds('filter_error', `Its expression failed last: ${lastFilterError}`, { lastFilterError })]),
      managerStep(subscription),
    ],
    advice: [
      ...(isEnabled ? [] : [enableSubscription(subscription)]),
      ...(endpoint?.isDisabled === true ? [enableEndpoint(endpoint)] : []),
      ...(application?.isDisabled === true ? [enableApplication(application)] : []),
      ...(lastFilterError === null ? [] : [repairExpression(id)]),
    ],
  });
}

function repairExpression(id: string): Advice {
  return advise('Read the subscription, and repair its expression.', 'GET', `/webhook-subscriptions/${id}`);
}

type Changed = Pick<WebhookApplication | WebhookEndpoint | WebhookSubscription, 'createdAtMs' | 'updatedAtMs'>;

function changeSteps(noun: string, { createdAtMs, updatedAtMs }: Changed): Step[] {
  const created = happened(createdAtMs, 'created', `The ${noun} was created.`);
  return updatedAtMs === createdAtMs ? [created] : [created, happened(updatedAtMs, 'changed', `The ${noun} was last changed.`)];
}

function disabledSteps(noun: string, { isDisabled, disabledReason }: Pick<WebhookEndpoint, 'isDisabled' | 'disabledReason'>): Step[] {
  const why = disabledReason === null ? '' : ` (${disabledReason})`;
  return isDisabled
    ? [holds('disabled', `The ${noun} is disabled${why}: new events skip it, and queued messages wait.`, { disabledReason })]
    : [];
}

function managerStep({ managedBy }: Pick<WebhookEndpoint, 'managedBy'>): Step {
  if (managedBy === null) return holds('managed', 'It is managed through the API.', { managers: [] });
  return holds('managed', `It is managed by the custom resource ${managedBy}: change it there, for example in Git.`, {
    managers: [managedBy],
  });
}
