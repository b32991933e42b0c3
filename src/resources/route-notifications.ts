import { z } from 'zod';
import { emailAddress } from './email-address.ts';
import { referenceList } from './fields.ts';

/** When a route sends alerts, and where to. */
export const routeNotifications = z.strictObject({
  onFailure: z.boolean().default(false).describe('Alerts when deliveries fail for good, and when a circuit opens.'),
  onSuccess: z.boolean().default(false).describe('Alerts when deliveries succeed.'),
  onRecovery: z
    .boolean()
    .default(false)
    .describe('Alerts when deliveries succeed again after a failure that was worth an alert, and when a circuit closes.'),
  failureThreshold: z
    .int()
    .min(1)
    .max(1000)
    .default(3)
    .describe('Consecutive failed messages, to one destination, before there is a failure alert.'),
  channelRefs: referenceList('NotificationChannel', 20)
    .optional()
    .describe('NotificationChannels that get the alerts. Default: all that are enabled.'),
  emails: z
    .array(emailAddress)
    .max(20)
    .meta({ 'x-kubernetes-list-type': 'set' })
    .optional()
    .describe('Addresses that get the alerts besides, by e-mail.'),
});
