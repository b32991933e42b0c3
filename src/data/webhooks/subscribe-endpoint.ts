import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { namedArgument } from '../../redis/script.ts';
import { list, text } from '../shard/script-reply.ts';
import { idTaken, transformRetired, webhookNotFound } from './webhook-changes.ts';
import { newIdPart, parseWebhookId, webhookId, webhookIdPrefixes } from './webhook-ids.ts';
import { endpointKind, idParts, subscriptionKind } from './webhook-kinds.ts';
import { encodeSubscription, newSubscriptionContent } from './webhook-records.ts';
import type { WebhookScripts } from './webhook-scripts.ts';
import type { NewWebhookSubscription, WebhookSubscription } from './webhooks.ts';

const maxSubscriptionsOfEndpoint = 5000;
const maxEventTypesAtOnce = 100;

/** Makes subscriptions of an endpoint, all in one step. Returns those that it did not have yet, in the order of the event types. */
export async function subscribeEndpoint(
  { scripts, clock }: { scripts: WebhookScripts; clock: Clock },
  { id, mark = '', ...template }: Omit<NewWebhookSubscription, 'eventTypeId'>,
  eventTypeIds: readonly string[],
): Promise<WebhookSubscription[]> {
  if (eventTypeIds.length > maxEventTypesAtOnce)
    throw new PosthornError('INTERNAL', `more than ${maxEventTypesAtOnce} event types at once`);
  if (id !== undefined && parseWebhookId('subscription', id) === null) throw new PosthornError('INTERNAL', `${id} is no id of this kind`);
  const { org, endpointId } = template;
  const content = newSubscriptionContent(template, clock.now());
  const parts = eventTypeIds.map(() => id?.slice(webhookIdPrefixes.subscription.length) ?? newIdPart());
  const wanted = namedArgument({
    endpoint: idParts('endpoint', endpointId),
    maxSubscriptions: maxSubscriptionsOfEndpoint,
    mark,
    transform: content.transformId,
    json: encodeSubscription(content),
    subscriptions: eventTypeIds.map((eventType, i) => ({ eventType, part: parts[i], id })),
  });
  const reply = list(await scripts.run('subscribe', org, [wanted]));
  if (reply[0] === 'made') return reply.slice(1).map((row) => subscriptionKind.row(org, row).object);
  const [outcome = '', , , application = '', applicationPart = '', ...numbers] = reply.map(text);
  switch (outcome) {
    case 'done':
      break;
    case 'missing':
      throw webhookNotFound(endpointKind);
    case 'gone':
      throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such event type.');
    case 'retired':
      throw transformRetired();
    case 'exists':
      throw idTaken(subscriptionKind);
    case 'full':
      throw new PosthornError('CONFLICT', `An endpoint has at most ${maxSubscriptionsOfEndpoint} subscriptions.`);
    default:
      throw new PosthornError('INTERNAL', `a script answered ${outcome}`);
  }
  const applicationId = webhookId('application', Number(application), applicationPart);
  return numbers.flatMap((number, i) => {
    if (number === '') return [];
    const own = webhookId('subscription', Number(number), parts[i] ?? '');
    return [{ id: own, org, endpointId, applicationId, eventTypeId: eventTypeIds[i] ?? '', ...content }];
  });
}
