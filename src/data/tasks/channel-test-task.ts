import { z } from 'zod';
import { shownAttemptDetail } from '../shard/shown-attempt-detail.ts';
import type { TaskKind } from './task-kind.ts';

export const channelTestResult = z
  .union([
    z
      .object({
        success: z.literal(true).describe('The alert arrived.'),
        message: z.string().describe('The same in words.'),
        detail: shownAttemptDetail.optional(),
      })
      .meta({ id: 'ChannelTestSuccess', description: 'The test alert arrived.' }),
    z
      .object({
        success: z.literal(false).describe('It failed.'),
        error: z.string().describe('Kind of the failure: http_error, timeout, network, dns, tls, blocked, not_ready or not_configured.'),
        message: z.string().describe('The same in words.'),
        detail: shownAttemptDetail.optional(),
      })
      .meta({ id: 'ChannelTestFailure', description: 'The test alert did not arrive.' }),
  ])
  .meta({ id: 'NotificationChannelTest' });
export type ChannelTestResult = z.output<typeof channelTestResult>;

/** Sends a test alert to a notification channel. `generation`: of the channel as the caller has seen it. */
export const channelTestTask = {
  name: 'channel-test',
  input: z.object({ channelId: z.string(), generation: z.int() }),
  result: channelTestResult,
} satisfies TaskKind<{ channelId: string; generation: number }, ChannelTestResult>;
