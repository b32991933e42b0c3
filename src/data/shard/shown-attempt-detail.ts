import { z } from 'zod';
import { joinedHeaders } from '../../core/joined-headers.ts';
import type { AttemptDetail } from './attempt-detail.ts';

const phase = z.int().min(0).nullable().describe('Milliseconds. 0: not needed. null: not ended.');
const headers = z.record(z.string(), z.string()).nullable().describe('Secrets are masked. null: there were none.');

/** The detail of an attempt as the API shows it. */
export const shownAttemptDetail = z
  .object({
    requestHeaders: headers,
    responseHeaders: headers,
    headersTruncated: z.boolean().describe('Some headers are left out or cut.'),
    peerAddress: z.string().nullable().describe('Address and port that was tried.'),
    reusedConnection: z.boolean().describe('The connection was open before.'),
    requestBytes: z.int().min(0).describe('Bytes of the body that was sent.'),
    responseBytes: z.int().min(0).describe('Bytes of the body that were read.'),
    phases: z
      .object({
        dnsMs: phase,
        connectMs: phase,
        tlsMs: phase,
        firstByteMs: phase,
        totalMs: z.int().min(0).describe('Milliseconds.'),
      })
      .describe('How long each phase took.'),
  })
  .meta({ id: 'AttemptDetail', description: 'What was sent and received; absent where it is not kept.' });
export type ShownAttemptDetail = z.input<typeof shownAttemptDetail>;

/** The field `detail` of what is shown of an attempt; none when there is no detail. */
export function detailField(detail: AttemptDetail | null | undefined): { detail?: ShownAttemptDetail } {
  if (detail === null || detail === undefined) return {};
  const { requestHeaders, responseHeaders, isTruncated: headersTruncated, ...rest } = detail;
  return {
    detail: {
      ...rest,
      requestHeaders: requestHeaders && joinedHeaders(requestHeaders),
      responseHeaders: responseHeaders && joinedHeaders(responseHeaders),
      headersTruncated,
    },
  };
}
