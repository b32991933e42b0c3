import { z } from 'zod';
import { shownAttemptDetail } from '../shard/shown-attempt-detail.ts';
import type { TaskKind } from './task-kind.ts';

/** Result of a test of a webhook endpoint; the fields are those of an attempt. */
export const endpointTestResult = z
  .object({
    success: z.boolean().describe('Whether the endpoint took it.'),
    responseStatus: z.int().nullable().describe('Status of the answer; null without one.'),
    responseTimeMs: z.int().min(0).describe('Milliseconds that it took.'),
    responseBody: z.string().nullable().describe('Beginning of the answer; null without one.'),
    errorType: z
      .string()
      .nullable()
      .describe('null when it went well; else the kind of failure, such as http_error, timeout, network, dns, tls, blocked, gone.'),
    errorMessage: z.string().nullable().describe('What went wrong, in words; null when nothing did.'),
    detail: shownAttemptDetail.optional(),
  })
  .meta({ id: 'WebhookEndpointTest' });
export type EndpointTestResult = z.output<typeof endpointTestResult>;

const input = z.object({
  applicationId: z.string(),
  endpointId: z.string(),
  /** Name; null: a type that is none, for tests alone. */
  eventType: z.string().nullable(),
  /** JSON text; null: a sample. */
  payload: z.string().nullable(),
});

/** Sends a payload to a webhook endpoint once, as a message would be. */
export const endpointTestTask: TaskKind<z.output<typeof input>, EndpointTestResult> = {
  name: 'endpoint-test',
  input,
  result: endpointTestResult,
};
