import { z } from 'zod';
import type { TaskKind } from './task-kind.ts';

export const channelTestResult = z
  .union([
    z.object({ success: z.literal(true), message: z.string() }),
    z.object({
      success: z.literal(false),
      error: z.string().describe('Kind of the failure: http_error, timeout, network, dns, tls, blocked, not_ready, not_configured, …'),
      message: z.string(),
    }),
  ])
  .meta({ id: 'NotificationChannelTest' });
export type ChannelTestResult = z.output<typeof channelTestResult>;

/** Sends a test alert to a notification channel. `generation`: of the channel as the caller has seen it. */
export const channelTestTask = {
  name: 'channel-test',
  input: z.object({ channelId: z.string(), generation: z.int() }),
  result: channelTestResult,
} satisfies TaskKind<{ channelId: string; generation: number }, ChannelTestResult>;
