import type { Family } from '../operation.ts';
import { analytics } from './analytics.ts';
import { apiKeys } from './api-keys.ts';
import { cronJobs } from './cron-jobs.ts';
import { dashboards } from './dashboard.ts';
import { deliveries } from './deliveries.ts';
import { destinations } from './destinations.ts';
import { events } from './events.ts';
import { filters } from './filters.ts';
import { notificationChannels } from './notification-channels.ts';
import { payloadSchemas } from './payload-schemas.ts';
import { routes } from './routes.ts';
import { sources } from './sources.ts';
import { transforms } from './transforms.ts';
import { deadLetters } from './webhooks/dead-letters.ts';
import { eventTypes } from './webhooks/event-types.ts';
import { messageExport } from './webhooks/message-export.ts';
import { outboundMessages } from './webhooks/outbound-messages.ts';
import { sendEvent } from './webhooks/send-event.ts';
import { webhookAnalytics } from './webhooks/webhook-analytics.ts';
import { webhookApplications } from './webhooks/webhook-applications.ts';
import { webhookEndpoints } from './webhooks/webhook-endpoints.ts';
import { webhookEvents } from './webhooks/webhook-events.ts';
import { webhookSubscriptions } from './webhooks/webhook-subscriptions.ts';

/** Everything that the API serves. A new family is a file of its own and one line here. */
export const families: readonly Family[] = [
  destinations,
  routes,
  sources,
  filters,
  transforms,
  payloadSchemas,
  cronJobs,
  notificationChannels,
  events,
  deliveries,
  analytics,
  dashboards,
  apiKeys,
  eventTypes,
  webhookApplications,
  sendEvent,
  outboundMessages,
  deadLetters,
  webhookEndpoints,
  webhookSubscriptions,
  messageExport,
  webhookEvents,
  webhookAnalytics,
];
