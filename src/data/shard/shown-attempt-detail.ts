import { z } from 'zod';
import { joinedHeaders } from '../../core/joined-headers.ts';
import type { AttemptDetail } from './attempt-detail.ts';

const phase = (what: string) => z.int().min(0).nullable().describe(what);
const headers = (whose: string) => z.record(z.string(), z.string()).nullable().describe(whose);

/** The detail of an attempt as the API shows it. */
export const shownAttemptDetail = z
  .object({
    requestHeaders: headers('As sent, secrets masked; null: nothing was sent.'),
    responseHeaders: headers('At most 4 KiB, secrets masked; null: there was no response.'),
    headersTruncated: z.boolean().describe('Some headers are left out or cut.'),
    peerAddress: z.string().nullable().describe('Address and port that was connected to or tried.'),
    reusedConnection: z.boolean().describe('An open connection was used.'),
    requestBytes: z.int().min(0).describe('Bytes of the body that was sent.'),
    responseBytes: z.int().min(0).describe('Bytes of the body that were read.'),
    phases: z
      .object({
        dnsMs: phase('Name lookup.'),
        connectMs: phase('TCP connect.'),
        tlsMs: phase('TLS handshake.'),
        firstByteMs: phase('From the request to the response headers.'),
        totalMs: z.int().min(0).describe('All, with the wait for a connection.'),
      })
      .describe('Milliseconds. 0: not needed. null: not ended.'),
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
