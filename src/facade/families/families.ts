import type { Family } from '../http/operation.ts';
import { analytics } from './analytics/analytics.ts';
import { dashboards } from './analytics/dashboard.ts';
import { apiKeys } from './api-keys/api-keys.ts';
import { cronJobs } from './cron-jobs/cron-jobs.ts';
import { destinations } from './destinations/destinations.ts';
import { explain } from './explain/explain.ts';
import { filters } from './filters/filters.ts';
import { installation } from './installation/installation.ts';
import { manifests } from './manifests/manifests.ts';
import { deliveries } from './messages/deliveries.ts';
import { events } from './messages/events.ts';
import { notificationChannels } from './notification-channels/notification-channels.ts';
import { organizations } from './organizations/organizations.ts';
import { payloadSchemas } from './payload-schemas/payload-schemas.ts';
import { replays } from './replays/replays.ts';
import { routes } from './routes/routes.ts';
import { sessions } from './sessions/sessions.ts';
import { sources } from './sources/sources.ts';
import { stream } from './stream/stream.ts';
import { transforms } from './transforms/transforms.ts';
import { webhookAnalytics } from './webhooks/analytics/webhook-analytics.ts';
import { webhookApplications } from './webhooks/applications/webhook-applications.ts';
import { webhookEndpoints } from './webhooks/endpoints/webhook-endpoints.ts';
import { eventTypes } from './webhooks/event-types/event-types.ts';
import { deadLetters } from './webhooks/messages/dead-letters.ts';
import { messageExport } from './webhooks/messages/message-export.ts';
import { outboundMessages } from './webhooks/messages/outbound-messages.ts';
import { webhookEvents } from './webhooks/messages/webhook-events.ts';
import { sendEvent } from './webhooks/sending/send-event.ts';
import { webhookSubscriptions } from './webhooks/subscriptions/webhook-subscriptions.ts';

const own: readonly Family[] = [
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
  replays,
  stream,
  analytics,
  dashboards,
  apiKeys,
  sessions,
  organizations,
  installation,
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
  explain,
];

/** Everything that the API serves. A new family is a file of its own and one line above. */
export const families: readonly Family[] = [...own, manifests(own)];
