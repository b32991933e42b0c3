import { alertOrganization } from '../../../core/alert.ts';
import type { ChannelAlert } from '../../../data/alerts/channel-alerts.ts';
import type { Call } from '../../http/operation.ts';

/** The alert with its state of now: without a further attempt it ends where the channel is disabled, or its secret does not open any more. */
export async function currentAlert({ services, caller }: Pick<Call, 'services' | 'caller'>, alert: ChannelAlert): Promise<ChannelAlert> {
  if (alert.state !== 'retrying') return alert;
  const message = await services.messages.delivery(alertOrganization(caller.organization.id), alert.messageId);
  return message === null || message.status === 'dlq' ? { ...alert, state: 'failed' } : alert;
}
