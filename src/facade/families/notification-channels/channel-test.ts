import { channelTestResult, channelTestTask } from '../../../data/tasks/channel-test-task.ts';
import { operation } from '../../http/operation.ts';
import { limitMailTests } from '../../http/rate-limiting.ts';
import { findToRead, idOf } from '../../records/lookup.ts';

/** The deadline of two attempts, and a while until a worker has taken the test. */
const timeoutMs = 26_000;

export const channelTestOperation = operation({
  method: 'POST',
  path: '/notification-channels/{id}/test',
  operationId: 'testNotificationChannel',
  summary: 'Send a test alert to a notification channel',
  description:
    'A delivery worker sends a test alert once, also while the channel is disabled. The answer is 200 also when the test fails; 503 when no worker could make it. The e-mail channels of an organization have 5 tests in an hour.',
  scope: 'write',
  answer: { status: 200, description: 'How the test went.', schema: channelTestResult },
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const channel = await findToRead(call, 'NotificationChannel', call.params['id'] ?? '');
    if (channel.spec.type === 'email') await limitMailTests(call.services.rateLimiter, call.caller);
    return await call.services.tasks.call(channelTestTask, {
      org: call.caller.organization.id,
      credential: call.caller.credential.id,
      input: { channelId: idOf(channel), generation: channel.metadata.generation },
      timeoutMs,
    });
  },
});
