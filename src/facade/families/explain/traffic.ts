import { ownProvider } from '../../../core/providers/providers.ts';
import type { CircuitView } from '../../../data/queue/circuits.ts';
import type { PosthornObject, ServedKind } from '../../../resources/kinds.ts';
import { destinationBeyondPlan } from '../../../resources/plan-gates.ts';
import type { Call } from '../../http/operation.ts';
import { cachedReferrers, idOf, inCache } from '../../records/lookup.ts';
import { isoTimeOrNull } from '../../records/record-fields.ts';
import { advise, atTime, counted, happened, holds, type More, type Next, type Step } from './explanation.ts';
import { monthOfOrganization } from './month.ts';
import { signatureFailuresOf } from './signature-failures-of.ts';
import { adviceOnWait } from './wait-advice.ts';

/** Reports counters, backlog and circuits of sources, routes and destinations, failed signatures of sources, and what is left of the month for sources and event types. */

const maxTargets = 200;
const maxCircuitsShown = 20;
const maxHeldShown = 20;

export async function trafficOf(call: Call, object: PosthornObject<ServedKind>, id: string): Promise<More> {
  if (isA(object, 'Source')) {
    const isCounted = object.spec.provider !== ownProvider;
    const [events, month, failures] = await Promise.all([
      eventsStep(call, id, 'received'),
      isCounted ? monthOfOrganization(call) : null,
      signatureFailuresOf(call, object, id),
    ]);
    return {
      steps: [events, ...failures.steps, ...(month === null ? [] : [month.step])],
      advice: [...failures.advice, ...sourceAdvice(call, object), ...(month?.advice ?? [])],
    };
  }
  if (isA(object, 'WebhookEventType')) {
    const month = await monthOfOrganization(call);
    return month === null ? { steps: [] } : { steps: [month.step], advice: month.advice };
  }
  if (isA(object, 'Route')) {
    const targets = destinationIds(call, object).map((destinationId) => ({ routeId: id, destinationId }));
    const events = await eventsStep(call, id, 'taken');
    const more = await targetsOf(call, targets, ({ routeId }) => routeId === id);
    const held = await heldTargets(call, object);
    return { ...more, steps: [events, ...held.steps, ...more.steps], advice: [...(held.advice ?? []), ...(more.advice ?? [])] };
  }
  if (isA(object, 'Destination')) {
    const routes = cachedReferrers(call, 'Route', object);
    const counters = await countersStep(call, id);
    const targets = routes.map((route) => ({ routeId: idOf(route), destinationId: id }));
    const more = await targetsOf(call, targets, ({ destinationId }) => destinationId === id);
    return { ...more, steps: [counters, ...more.steps] };
  }
  return { steps: [] };
}

export function isA<K extends ServedKind>(object: PosthornObject<ServedKind>, kind: K): object is PosthornObject<K> {
  return object.kind === kind;
}

async function eventsStep({ services, caller }: Call, id: string, verb: 'received' | 'taken'): Promise<Step> {
  const { events, lastEventAtMs } = await services.messages.eventCounters(caller.organization.id, id);
  const text =
    events === 0 ? `It has ${verb} no event yet.` : `It has ${verb} ${counted(events, 'event')}, the last one${atTime(lastEventAtMs)}.`;
  return holds('events', text, { events, lastEventAt: isoTimeOrNull(lastEventAtMs) });
}

async function countersStep({ services, caller }: Call, id: string): Promise<Step> {
  const { deliveries, successes, averageLatencyMs, lastDeliveryAtMs } = await services.messages.destinationCounters(
    caller.organization.id,
    id,
  );
  const text =
    deliveries === 0
      ? 'No delivery to it has ended yet.'
      : `Ended deliveries to it: ${deliveries}, with success: ${successes}, the last one${atTime(lastDeliveryAtMs)}.`;
  return holds('deliveries', text, { deliveries, successes, averageLatencyMs, lastDeliveryAt: isoTimeOrNull(lastDeliveryAtMs) });
}

function sourceAdvice(call: Call, source: PosthornObject<'Source'>) {
  if (cachedReferrers(call, 'Route', source).length > 0) return [];
  return [
    advise('Make a route: without one, events of the source go nowhere.', 'POST', '/routes', {
      name: 'New route',
      sourceId: idOf(source),
      destinationIds: ['dst_…'],
    }),
  ];
}

function destinationIds(call: Call, { spec }: PosthornObject<'Route'>): string[] {
  const references = [...spec.destinationRefs, ...(spec.failover?.destinationRefs ?? [])];
  return references.flatMap(({ name }) => {
    const destination = inCache(call, 'Destination', name);
    return destination === undefined ? [] : [idOf(destination)];
  });
}

interface HeldTarget {
  destinationId: string;
  reason: 'destination_disabled' | 'destination_suspended';
  text: string;
}

/** Destinations for which deliveries of the route wait, because they are disabled or the plan suspends them. */
async function heldTargets(call: Call, { spec }: PosthornObject<'Route'>): Promise<Pick<More, 'steps' | 'advice'>> {
  const held = spec.destinationRefs.flatMap(({ name }): HeldTarget[] => {
    const destination = inCache(call, 'Destination', name);
    if (destination === undefined) return [];
    const beyondPlan = destinationBeyondPlan(destination.spec, call.caller.organization.plan);
    const destinationId = idOf(destination);
    if (!destination.spec.enabled)
      return [{ destinationId, reason: 'destination_disabled', text: `The destination ${destinationId} is disabled.` }];
    if (beyondPlan === null) return [];
    const text = `The destination ${destinationId} is suspended: ${beyondPlan}.`;
    return [{ destinationId, reason: 'destination_suspended', text }];
  });
  const some = held.slice(0, maxHeldShown);
  const advice = await Promise.all(
    some.map(({ reason, destinationId }) => adviceOnWait(call, reason, { routeId: '', destinationId, isForWebhook: false })),
  );
  return {
    steps: some.map(({ reason, destinationId, text }) => holds(reason, `${text} Deliveries to it wait.`, { destinationId })),
    advice: advice.flat(),
  };
}

interface TargetIds {
  routeId: string;
  destinationId: string;
}

/** Reads at most 200 circuits. */
async function targetsOf(call: Call, targets: readonly TargetIds[], isWanted: (target: TargetIds) => boolean): Promise<More> {
  const { services, caller } = call;
  const org = caller.organization.id;
  const [circuits, { targets: all }] = await Promise.all([
    services.circuits.ofTargets(org, targets.slice(0, maxTargets)),
    services.statistics.ofOrganization(org, '1h'),
  ]);
  const own = all.filter(isWanted);
  const fresh = own.reduce((sum, each) => sum + each.fresh, 0);
  const retries = own.reduce((sum, each) => sum + each.retries, 0);
  const backlog = holds('backlog', `Deliveries not ended: ${fresh + retries}, after a failed attempt: ${retries}.`, { fresh, retries });
  const broken = circuits.filter(({ state }) => state !== 'closed');
  const [first] = broken;
  return {
    steps: [
      backlog,
      ...lastSteps(circuits),
      ...(broken.length === 0 ? [holds('circuit', 'Its circuits are closed.')] : broken.slice(0, maxCircuitsShown).map(circuitStep)),
    ],
    next: first === undefined ? null : probeOf(first),
    advice: first === undefined ? [] : await adviceOnWait(call, 'circuit_open', { ...first, isForWebhook: false }),
  };
}

export function circuitStep({ state, routeId, destinationId, consecutiveFailures, openedAtMs, lastFailure }: CircuitView): Step {
  const text = `The circuit from ${routeId} to ${destinationId} is ${state}, after ${consecutiveFailures} consecutive failed attempts.`;
  const data = { state, routeId, destinationId, consecutiveFailures, lastFailure };
  return openedAtMs === null ? holds('circuit', text, data) : happened(openedAtMs, 'circuit', text, data);
}

/** Returns the latest success and the latest failure of the statistics. */
export function lastSteps(circuits: readonly CircuitView[]): Step[] {
  const success = Math.max(0, ...circuits.map(({ lastSuccessAtMs }) => lastSuccessAtMs ?? 0));
  const failure = Math.max(0, ...circuits.map(({ lastFailureAtMs }) => lastFailureAtMs ?? 0));
  return [
    ...(success === 0 ? [] : [happened(success, 'last_success', 'An attempt last succeeded.')]),
    ...(failure === 0 ? [] : [happened(failure, 'last_failure', 'An attempt last failed.')]),
  ];
}

export function probeOf({ cooldownEndsAtMs }: CircuitView): Next {
  return { what: 'probe', at: isoTimeOrNull(cooldownEndsAtMs), text: `The circuit lets probes through${atTime(cooldownEndsAtMs)}.` };
}
