import type { WebhookApplication, WebhookEndpoint, WebhookSubscription } from '../../../data/webhooks/webhooks.ts';
import type { PosthornObject, ServedKind } from '../../../resources/kinds.ts';
import { nouns } from '../../records/nouns.ts';
import { foreignOwners } from '../../records/owned-spec.ts';
import { type Advice, advise } from './explanation.ts';

/** Returns how a disabled object is enabled: by a request, unless another manager than the API owns it. */

export const collections: Readonly<Record<ServedKind, string>> = {
  Source: 'sources',
  Destination: 'destinations',
  Route: 'routes',
  Filter: 'filters',
  Transform: 'transforms',
  PayloadSchema: 'schemas',
  HttpCronJob: 'cron',
  Replay: 'replays',
  NotificationChannel: 'notification-channels',
  ApiKey: 'api-keys',
  WebhookEventType: 'event-types',
};

/** `object`: undefined where it is not known. */
export function enableResource(kind: ServedKind, id: string, object: PosthornObject<ServedKind> | undefined): Advice {
  const managers = foreignOwners(object?.metadata.managedFields ?? [], 'enabled');
  const body = kind === 'WebhookEventType' ? { isEnabled: true } : { isActive: true };
  return enable(nouns[kind], managers, `/${collections[kind]}/${id}`, body);
}

export function enableApplication({ id, managedBy }: Pick<WebhookApplication, 'id' | 'managedBy'>): Advice {
  return enable('application', managersOf(managedBy), `/webhook-applications/${id}`, { isDisabled: false });
}

export function enableEndpoint({ id, managedBy }: Pick<WebhookEndpoint, 'id' | 'managedBy'>): Advice {
  return enable('endpoint', managersOf(managedBy), `/webhook-endpoints/${id}`, { isDisabled: false });
}

export function enableSubscription({ id, managedBy }: Pick<WebhookSubscription, 'id' | 'managedBy'>): Advice {
  return enable('subscription', managersOf(managedBy), `/webhook-subscriptions/${id}`, { isEnabled: true });
}

function managersOf(managedBy: string | null): string[] {
  return managedBy === null ? [] : [`the custom resource ${managedBy}`];
}

function enable(noun: string, managers: readonly string[], path: string, body: object): Advice {
  if (managers.length === 0) return advise(`Enable the ${noun}.`, 'PATCH', path, body);
  return { text: `Enable the ${noun} where it is managed, for example in Git: by ${managers.join(', ')}.` };
}
