import type { ServedKind } from '../http/services.ts';

/** What the API calls one of each kind. */
export const nouns: Readonly<Record<ServedKind, string>> = {
  Source: 'source',
  Destination: 'destination',
  Route: 'route',
  Filter: 'filter',
  Transform: 'transform',
  PayloadSchema: 'schema',
  NotificationChannel: 'notification channel',
  HttpCronJob: 'cron job',
  ApiKey: 'API key',
  WebhookEventType: 'event type',
};
