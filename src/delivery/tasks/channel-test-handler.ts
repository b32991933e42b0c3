import { randomBytes } from 'node:crypto';
import { type Alert, alertWithoutMessage } from '../../core/alert.ts';
import { egressRules } from '../../core/egress-policy.ts';
import { PosthornError } from '../../core/errors.ts';
import { base32 } from '../../core/ids.ts';
import type { NotificationChannelRecord } from '../../core/records.ts';
import { recordSealingContext } from '../../core/sealing-contexts.ts';
import type { ChannelAlert } from '../../data/alerts/channel-alerts.ts';
import { detailField } from '../../data/shard/shown-attempt-detail.ts';
import { type ChannelTestResult, channelTestTask } from '../../data/tasks/channel-test-task.ts';
import { channelAlert } from '../attempts/alert-attempt.ts';
import { attemptRecord, testDetailPolicy } from '../attempts/attempt-outcome.ts';
import type { PlanSources } from '../plans/delivery-plan.ts';
import { channelSender, noMailServer } from '../targets/channel/channel-sender.ts';
import { awaitedRecord } from './awaited-record.ts';
import { type TaskHandler, taskHandler } from './task-handler.ts';

/** Records an alert in the list of its channel. Does not wait, and never fails. */
export type RecordAlert = (org: string, channelId: string, alert: ChannelAlert) => void;

/** Sends a test alert once, which the alerts of the channel show. What it opens at PagerDuty is closed at once. */
export function channelTestHandler(options: PlanSources, recordAlert: RecordAlert): TaskHandler {
  const { registry, keyring, allowed, clock, mailer, attemptDetail } = options;
  return taskHandler(channelTestTask, async ({ channelId, generation }, context) => {
    const record = await awaitedRecord(options, 'notificationChannel', channelId, generation, context);
    if (record === null)
      return failure('not_ready', 'The channel is not programmed: its conditions say why, such as a Secret that is missing.');
    const { channel, org, id } = record;
    if (channel.type === 'email' && mailer === null) return failure('not_configured', noMailServer);
    const egress = egressRules(allowed, await registry.get('organization', org));
    const send = channelSender(
      channel,
      (sealed, field) => keyring.open(sealed, recordSealingContext(org, 'notificationChannel', id, field)),
      { ...options, egress, account: org },
    );
    if (send === null) return failure('secret_decryption_failed', 'A secret of the channel cannot be opened.');
    const testId = `test_${base32(randomBytes(10))}`;
    let detail: ReturnType<typeof detailField> = {};
    for (const isBroken of channel.type === 'pagerduty' ? [true, false] : [true]) {
      const startedAtMs = clock.now();
      const alert = testAlert(record, startedAtMs);
      const result = await send({
        alert,
        isBroken,
        routingKey: null,
        messageId: testId,
        eventId: testId,
        number: 1,
        signal: context.signal,
      });
      if (context.signal.aborted && result.type === 'error')
        throw new PosthornError('UNAVAILABLE', 'The delivery worker is stopping.', { retryAfterSeconds: 1 });
      const times = { startedAtMs, endedAtMs: clock.now() };
      const attempt = attemptRecord(result, { expectedResponse: null }, times, testDetailPolicy(attemptDetail));
      const { errorType, errorMessage } = attempt;
      detail = detailField(attempt.detail);
      const state = errorType === null ? 'delivered' : 'failed';
      recordAlert(org, id, channelAlert(alert, { messageId: testId, attempts: 1, state }, attempt));
      if (errorType !== null) return { ...failure(errorType, errorMessage ?? 'The channel did not take the test.'), ...detail };
    }
    const unconfirmed = channel.type === 'email' ? await mailer?.unconfirmedProblem(org, channel.addresses) : null;
    return { success: true, message: `The channel took the test alert.${unconfirmed == null ? '' : ` But ${unconfirmed}.`}`, ...detail };
  });
}

function failure(error: string, message: string): ChannelTestResult {
  return { success: false, error, message };
}

function testAlert({ id, org, name }: NotificationChannelRecord, nowMs: number): Alert {
  const about = { id: `test-${id}`, name };
  return { ...alertWithoutMessage('delivery.failed', { organizationId: org, about, atMs: nowMs }), test: true };
}
