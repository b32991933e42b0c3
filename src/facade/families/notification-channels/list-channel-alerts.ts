import { z } from 'zod';
import { alertSchema } from '../../../core/alert.ts';
import { type ChannelAlert, maxAlertsOfChannel } from '../../../data/alerts/channel-alerts.ts';
import { operation } from '../../http/operation.ts';
import { mapConcurrently } from '../../records/concurrently.ts';
import { findToRead, idOf } from '../../records/lookup.ts';
import { isoTime, timestamp } from '../../records/record-fields.ts';
import { currentAlert } from '../shared/current-alert.ts';

const named = (what: string) => z.object({ id: z.string().describe(`Id of the ${what}.`), name: z.string().describe('Its name.') });

const channelAlertRecord = z
  .object({
    id: z.string().describe('Id of the message to the channel.'),
    type: alertSchema.shape.type.describe('What it tells.'),
    isTest: z.boolean().describe('It was a test: nothing has happened.'),
    route: named('route').nullable().describe('null for a test.'),
    destination: named('destination').nullable().describe('null for a test.'),
    count: z.int().describe('How many messages, or transitions, it reports.'),
    status: z
      .enum(['delivered', 'retrying', 'failed'])
      .describe('What became of it; `retrying`: the last attempt failed, and there will be another one.'),
    attempts: z.int().describe('How many attempts were made.'),
    lastAttemptAt: timestamp.describe('When the last attempt ended.'),
    responseStatus: z.int().nullable().describe('Status of the last answer; null without one.'),
    errorMessage: z.string().nullable().describe('Why the last attempt failed, at most 300 characters; null when it did not.'),
  })
  .meta({ id: 'ChannelAlert' });

export const channelAlertsOperation = operation({
  method: 'GET',
  path: '/notification-channels/{id}/alerts',
  operationId: 'listChannelAlerts',
  summary: 'List what was sent to a notification channel',
  description: `The last ${maxAlertsOfChannel} alerts and tests, each as its last attempt has left it.`,
  scope: 'read',
  answer: {
    status: 200,
    description: 'The newest first.',
    schema: z.object({ data: z.array(channelAlertRecord).describe('The alerts.') }),
  },
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const channel = await findToRead(call, 'NotificationChannel', call.params['id'] ?? '');
    const alerts = await call.services.channelAlerts.newest(call.caller.organization.id, idOf(channel));
    return { data: await mapConcurrently(alerts, async (alert) => toRecord(await currentAlert(call, alert))) };
  },
});

function toRecord({ messageId, state, lastAttemptAtMs, route, destination, ...rest }: ChannelAlert): z.input<typeof channelAlertRecord> {
  const about = rest.isTest ? { route: null, destination: null } : { route, destination };
  return { id: messageId, ...rest, ...about, status: state, lastAttemptAt: isoTime(lastAttemptAtMs) };
}
