import type { ChannelAlert } from '../../../data/alerts/channel-alerts.ts';
import type { Call } from '../../http/operation.ts';
import { mapConcurrently } from '../../records/concurrently.ts';
import { cachedObjects, idOf } from '../../records/lookup.ts';
import { nameOf } from '../../records/record-fields.ts';
import { currentAlert } from '../shared/current-alert.ts';
import { advise, counted, type Explanation, explained, happened, holds } from './explanation.ts';
import { waitOf } from './wait-advice.ts';

/** Channels whose last alerts are searched for an id. */
const maxChannels = 200;

/** An alert to a notification channel, or a test of one. Null: it is not among the last ones of a channel of the organization. */
export async function explainAlert(call: Call, id: string): Promise<Explanation | null> {
  const { caller, services } = call;
  const found = await mapConcurrently(cachedObjects(call, 'NotificationChannel').slice(0, maxChannels), async (channel) => {
    const alerts = await services.channelAlerts.newest(caller.organization.id, idOf(channel));
    return alerts.filter(({ messageId }) => messageId === id).map((alert) => ({ alert, channelId: idOf(channel), name: nameOf(channel) }));
  });
  const [first] = found.flat();
  if (first === undefined) return null;
  const { channelId, name } = first;
  const alert = await currentAlert(call, first.alert);
  const { state, isTest, attempts, lastAttemptAtMs, responseStatus, errorMessage } = alert;
  const outcome = errorMessage === null ? 'succeeded' : `failed: ${errorMessage.replace(/\.$/, '')}`;
  return explained({
    id,
    kind: 'alert',
    state,
    summary: `The ${isTest ? 'test' : 'alert'} of the notification channel "${name}" ${stateTexts[state]} after ${counted(attempts, 'attempt')}.`,
    story: [
      holds('tells', contentOf(alert), { channelId, type: alert.type, isTest, count: alert.count }),
      happened(lastAttemptAtMs, 'attempt', `Attempt ${attempts} ${outcome}.`, {
        attemptNumber: attempts,
        responseStatus,
        errorMessage,
      }),
    ],
    waitsFor: state === 'retrying' ? waitOf('retry', null) : null,
    advice:
      state === 'delivered'
        ? []
        : [advise('Send a test to the channel now, and read what it returns.', 'POST', `/notification-channels/${channelId}/test`)],
  });
}

const stateTexts = { delivered: 'was delivered', retrying: 'waits for its next attempt', failed: 'has failed' } as const satisfies Record<
  ChannelAlert['state'],
  string
>;

function contentOf({ isTest, type, route, destination, count }: ChannelAlert): string {
  if (isTest) return 'It is a test of the channel: nothing has happened.';
  return `It reports ${type} of the route ${route.id} and the destination ${destination.id}, for ${counted(count, 'message or transition', 'messages or transitions')}.`;
}
