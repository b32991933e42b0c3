import { z } from 'zod';
import { shownAttemptDetail } from '../shard/shown-attempt-detail.ts';
import type { TaskKind } from './task-kind.ts';

/** Result of the test of a destination, as the API returns it. */
export const destinationTestResult = z.union([
  z
    .object({
      success: z.literal(true).describe('The endpoint took it.'),
      statusCode: z.int().describe('Status of the answer.'),
      latency: z.int().min(0).describe('Milliseconds.'),
      responseBody: z.string().describe('At most 10 KiB.'),
      message: z.string().describe('The same in words.'),
      detail: shownAttemptDetail.optional(),
    })
    .describe('Of an HTTP destination that took the test.'),
  z
    .object({
      success: z.literal(true).describe('The file was written.'),
      result: z
        .object({
          key: z.string().describe('Name of the file.'),
          size: z.int().min(0).describe('Bytes.'),
          count: z.int().min(0).describe('Records.'),
        })
        .meta({ id: 'WrittenFile', description: 'The file that was written.' }),
      message: z.string().describe('The same in words.'),
    })
    .meta({ id: 'WarehouseTestResult', description: 'Of a warehouse that took the test.' }),
  z
    .object({
      success: z.literal(false).describe('It failed.'),
      statusCode: z.int().nullable().describe('null when there was no answer.'),
      latency: z.int().min(0).describe('Milliseconds.'),
      error: z.string().describe('The kind of failure, such as http_error, timeout, network, dns, tls, blocked.'),
      message: z.string().describe('The same in words.'),
      detail: shownAttemptDetail.optional(),
    })
    .describe('Of a destination that did not take the test.'),
]);
export type DestinationTestResult = z.output<typeof destinationTestResult>;

const input = z.object({
  destinationId: z.string(),
  /** Generation of the resource. A record of an older generation does not have this setting yet. */
  generation: z.int(),
  /** JSON text as it was sent; null: a sample event. */
  payload: z.string().nullable(),
});

/** Sends a payload to a destination once, as a delivery would. */
export const destinationTestTask: TaskKind<z.output<typeof input>, DestinationTestResult> = {
  name: 'destination-test-as-sent',
  input,
  result: destinationTestResult,
};
