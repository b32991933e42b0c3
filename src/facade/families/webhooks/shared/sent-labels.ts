import { z } from 'zod';
import { text } from '../../../../resources/text.ts';

const limits = { labels: 64, labelKey: 128, labelValue: 512, metadataBytes: 16_384 };

/** Labels of an event, as they are sent. */
export const sentLabels = z
  .record(text(1, limits.labelKey), z.union([text(0, limits.labelValue), z.number(), z.boolean()]))
  .refine((labels) => Object.keys(labels).length <= limits.labels, { error: `must have at most ${limits.labels} labels` })
  .meta({ maxProperties: limits.labels })
  .describe('Labels that the filters of subscriptions match; numbers and booleans are kept as text.');

export const sentMetadata = z
  .record(z.string().min(1), z.unknown())
  .refine((metadata) => Buffer.byteLength(JSON.stringify(metadata)) <= limits.metadataBytes, {
    error: `must be at most ${limits.metadataBytes} bytes as JSON`,
  });

/** Labels as they are kept: numbers and booleans as text. */
export function labelTexts(labels: z.output<typeof sentLabels> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, String(value)]));
}
