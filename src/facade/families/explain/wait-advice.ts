import type { DeadLetterReason } from '../../../data/shard/messages.ts';
import type { WaitReason } from '../../../data/shard/waits.ts';
import type { WebhookDeadLetterReason } from '../../../data/webhooks/webhook-message-view.ts';
import type { Call } from '../../http/operation.ts';
import { inCache } from '../../records/lookup.ts';
import { isoTimeOrNull } from '../../records/record-fields.ts';
import { enableApplication, enableEndpoint, enableResource } from './enable.ts';
import { type Advice, advise, type Next, type Wait } from './explanation.ts';

/** Reasons of waits and of dead letters, in sentences, with advice. */

/** Where a message goes: `routeId` is an application and `destinationId` an endpoint when `isForWebhook`. */
export interface Goal {
  routeId: string;
  destinationId: string | null;
  isForWebhook: boolean;
}

const waits: Record<WaitReason, string> = {
  route_disabled: 'The route is disabled. Its deliveries wait until it is enabled.',
  destination_disabled: 'The destination is disabled. Its deliveries wait until it is enabled.',
  destination_suspended: 'The destination is suspended, because the plan of the organization does not have what it uses.',
  destination_missing: 'The destination does not exist, or is not in force.',
  transform_missing: 'The transform of the route does not exist, or is not in force.',
  endpoint_disabled: 'The endpoint is disabled. Its messages wait until it is enabled.',
  application_disabled: 'The application is disabled. The messages of its endpoints wait until it is enabled.',
  circuit_open:
    'The circuit is open, because too many attempts failed one after the other. Attempts are suspended until the cooldown ends.',
  scheduled: 'It is scheduled: its sender wants the first attempt at a later time.',
  retry: 'The last attempt failed. The next one is made after the backoff.',
  rate_limit: 'The rate limit of the receiver is reached.',
  application_rate_limit: 'The rate limit of the application is reached.',
  concurrency: 'The maximum number of attempts is under way at the destination.',
  earlier_message: 'Messages go out in order, one at a time: an earlier one is under way, or waits for its retry.',
  batch: 'The batch is neither complete nor old enough.',
  capacity: 'The workers have their maximum number of attempts under way at the receiver.',
  queue: 'It is queued behind others and waits for a worker.',
};

export function waitOf(reason: WaitReason, untilMs: number | null): Wait {
  return { reason, until: isoTimeOrNull(untilMs), text: waits[reason] };
}

/** Null: nothing is due at a time. */
export function nextOf(
  reason: WaitReason | null,
  { untilMs, attempts, maxAttempts }: { untilMs: number | null; attempts: number; maxAttempts: number },
): Next | null {
  if (
    reason !== 'scheduled' &&
    reason !== 'retry' &&
    reason !== 'circuit_open' &&
    reason !== 'rate_limit' &&
    reason !== 'application_rate_limit'
  )
    return null;
  const at = isoTimeOrNull(untilMs);
  const what = reason === 'circuit_open' ? ('probe' as const) : ('attempt' as const);
  const isLast = attempts + 1 >= maxAttempts;
  const end = isLast ? ' It is the last one: if it fails, the message is given up here.' : '';
  const text = `Attempt ${attempts + 1} of ${maxAttempts} is made${at === null ? '' : ` at ${at} at the earliest`}${what === 'probe' ? ', when the circuit lets probes through' : ''}.${end}`;
  return { what, at, text };
}

export async function adviceOnWait(call: Call, reason: WaitReason, { routeId, destinationId, isForWebhook }: Goal): Promise<Advice[]> {
  const { webhooks } = call.services;
  const org = call.caller.organization.id;
  const target = destinationId ?? '';
  const test = isForWebhook
    ? advise('Send a test to the endpoint now, and read what it returns.', 'POST', `/webhook-endpoints/${target}/test`, {})
    : advise('Send a test to the destination now, and read what it returns.', 'POST', `/destinations/${target}/test`, {});
  switch (reason) {
    case 'route_disabled':
      return [enableResource('Route', routeId, inCache(call, 'Route', routeId))];
    case 'destination_disabled':
      return [enableResource('Destination', target, inCache(call, 'Destination', target))];
    case 'endpoint_disabled':
      return [enableEndpoint((await webhooks.endpoint(org, target)) ?? { id: target, managedBy: null })];
    case 'application_disabled':
      return [enableApplication((await webhooks.application(org, routeId)) ?? { id: routeId, managedBy: null })];
    case 'destination_suspended':
      return [advise('Read the conditions of the destination: they name what the plan does not have.', 'GET', `/explain/${target}`)];
    case 'destination_missing':
    case 'transform_missing':
      return [advise('Read the conditions of the route: they name what is missing.', 'GET', `/explain/${routeId}`)];
    case 'circuit_open':
      if (isForWebhook)
        return [test, advise('Close the circuit once the receiver is repaired.', 'POST', `/webhook-endpoints/${target}/reset-circuit`)];
      return [
        test,
        advise('Close the circuit once the receiver is repaired.', 'POST', `/routes/${routeId}/reset-circuit`),
        advise('Read the circuit of the route.', 'GET', `/routes/${routeId}/circuit-status`),
      ];
    case 'scheduled':
      return [];
    case 'retry':
      return [test];
    case 'rate_limit':
    case 'concurrency':
    case 'application_rate_limit':
      return isForWebhook
        ? [advise('Read the limits of the endpoint, and of its application.', 'GET', `/webhook-endpoints/${target}`)]
        : [advise('Read the limits of the destination.', 'GET', `/destinations/${target}`)];
    case 'earlier_message':
      return isForWebhook
        ? [
            advise(
              'Read the messages of the endpoint that are under way or wait for a retry.',
              'GET',
              `/outbound-messages?endpointId=${target}`,
            ),
          ]
        : [
            advise(
              'Read the deliveries to the destination that are under way or wait for a retry.',
              'GET',
              `/deliveries?destinationId=${target}`,
            ),
          ];
    case 'batch':
    case 'capacity':
    case 'queue':
      return [{ text: 'Wait. If it stays so, check that delivery workers are running and are not overloaded.' }];
  }
}

/** How a scheduled message, or what waits of a scheduled event, is taken back. */
export function adviceOnScheduled(isForWebhook: boolean, what: { messageId: string } | { eventId: string }): Advice {
  const list = isForWebhook ? '/outbound-messages' : '/deliveries';
  if ('messageId' in what) return advise('Cancel it if it is not to be sent.', 'POST', `${list}/${what.messageId}/cancel`);
  return advise('Cancel what waits of the event if it is not to be sent.', 'POST', `${list}/cancel`, { filter: what });
}

const deadReasons: Record<DeadLetterReason | WebhookDeadLetterReason, string> = {
  max_retries_exceeded: 'all its attempts failed',
  circuit_breaker_exhausted: 'the circuit stayed open, or its target was disabled, for too long',
  destination_not_found: 'its destination no longer exists',
  endpoint_not_found: 'its endpoint no longer exists',
  route_deleted: 'its route was deleted',
  payload_not_found: 'its payload was no longer stored',
  secret_decryption_failed: 'a secret that it needs could not be decrypted',
  queue_limit_exceeded: 'the queue of its destination was full',
  cancelled: 'it was cancelled',
  expired: 'it expired: it was not delivered before its deadline',
};

const causes = {
  cancelled: deadReasons.cancelled,
  expired: deadReasons.expired,
  disabled: 'its endpoint or its application was disabled for too long',
  gone: 'its receiver answered 410 Gone, which disabled the endpoint',
  rejected: 'its receiver rejected it and allows no further attempt',
};

export interface DeadLetter {
  reason: DeadLetterReason | WebhookDeadLetterReason;
  /** Detail that the reason does not contain; null: none. */
  cause: keyof typeof causes | null;
}

export function deadLetterText({ reason, cause }: DeadLetter): string {
  return `It is a dead letter, because ${cause === null ? deadReasons[reason] : causes[cause]}.`;
}

function longerExpiry({ destinationId, isForWebhook }: Goal): Advice {
  const text = 'If messages have to wait longer, raise expiresAfterSeconds of';
  const again = 'A message that is sent again does not expire.';
  return isForWebhook
    ? advise(`${text} the endpoint, the event type or what is sent. ${again}`, 'GET', `/webhook-endpoints/${destinationId ?? ''}`)
    : advise(`${text} the destination, or what the sender asks for. ${again}`, 'GET', `/destinations/${destinationId ?? ''}`);
}

const makeAgain: Advice = {
  text: 'Create what is missing again with its former id in the annotation posthorn.dev/id: without it, the new object has another id, and a replay goes to the former one alone.',
};

/** The endpoint stays after a 410, and may have been enabled or deleted since. */
async function repairOfGone({ services, caller }: Call, { destinationId }: Goal): Promise<Advice[]> {
  const endpoint = await services.webhooks.endpoint(caller.organization.id, destinationId ?? '');
  if (endpoint === null) return [makeAgain];
  return endpoint.isDisabled ? [enableEndpoint(endpoint)] : [];
}

/** Advice before a dead letter is sent again; empty: it can be sent again. */
export async function repairOf(call: Call, { reason, cause }: DeadLetter, goal: Goal): Promise<Advice[]> {
  if (cause === 'cancelled') return [];
  if (cause === 'gone') return await repairOfGone(call, goal);
  if (cause === 'expired') return [...(await adviceOnWait(call, 'retry', goal)), longerExpiry(goal)];
  if (cause === 'disabled')
    return [
      advise(
        'Read which of them is disabled, and enable it before the message is sent again.',
        'GET',
        `/explain/${goal.destinationId ?? ''}`,
      ),
    ];
  switch (reason) {
    case 'cancelled':
      return [];
    case 'expired':
    case 'max_retries_exceeded':
    case 'circuit_breaker_exhausted':
    case 'queue_limit_exceeded':
      return await adviceOnWait(call, 'retry', goal);
    case 'secret_decryption_failed':
      return [{ text: 'Send the secrets again: they were sealed with a key that the installation no longer has.' }];
    case 'destination_not_found':
    case 'endpoint_not_found':
    case 'route_deleted':
      return [makeAgain];
    case 'payload_not_found':
      return [{ text: 'It cannot be sent again. Ask the sender to send the event once more.' }];
  }
}
