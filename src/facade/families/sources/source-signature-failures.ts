import { z } from 'zod';
import type { Provider } from '../../../core/providers/providers.ts';
import { signatureFailureReasons } from '../../../core/providers/signature-failure.ts';
import { maxSignatureFailures, type SignatureFailureEntry, signatureFailuresKeptMs } from '../../../data/intake/signature-failures.ts';
import { operation } from '../../http/operation.ts';
import { findToRead, idOf } from '../../records/lookup.ts';
import { isoTime, isoTimeOrNull, timestamp } from '../../records/record-fields.ts';
import { signatureFailureInWords } from '../shared/signature-failure-words.ts';

const failure = z
  .object({
    reason: z.enum(signatureFailureReasons).describe('Why no secret of the source vouches for the requests.'),
    message: z.string().describe('The same in words.'),
    advice: z.string().describe('What to check, or to do.'),
    header: z
      .string()
      .nullable()
      .describe(
        'The header that is missing or wrong, or has signatures of other versions, in lower case; null: the reason is none of a header.',
      ),
    secondsBehind: z
      .int()
      .nullable()
      .describe('Of a time outside the tolerance: seconds behind the time of the server in the last request, negative ahead of it.'),
    refused: z
      .boolean()
      .describe(
        'Whether the requests were answered 401, or 500 where no secret can be decrypted; false: the source accepts invalid signatures.',
      ),
    address: z.string().describe('Who sent the requests.'),
    userAgent: z.string().nullable().describe('Beginning of the User-Agent of the last request; null without one.'),
    requests: z.int().min(1).describe('How many requests, since firstAt.'),
    firstAt: timestamp.describe('When the first one came.'),
    lastAt: timestamp.describe('When the last one came.'),
  })
  .meta({ id: 'SignatureFailure', description: 'Requests from one address whose signatures failed for one reason.' });

export const sourceSignatureFailures = operation({
  method: 'GET',
  path: '/sources/{id}/signature-failures',
  operationId: 'getSourceSignatureFailures',
  summary: 'Read why signatures of a source failed',
  description: `The last ${maxSignatureFailures} failures by reason and address, for 24 hours after the last request of each. They are there about a second after the request. Senders do not receive the reason.`,
  scope: 'read',
  answer: {
    status: 200,
    description: 'The newest first.',
    schema: z.object({
      data: z.array(failure).describe('The failures.'),
      requests: z
        .int()
        .min(0)
        .describe('All requests whose signatures failed since `since`, also those that are in no failure of the list.'),
      since: timestamp.nullable().describe('When the first one of them came; null: there is none.'),
    }),
  },
  errors: ['RESOURCE_NOT_FOUND'],
  handle: async (call) => {
    const source = await findToRead(call, 'Source', call.params['id'] ?? '');
    const { services, caller } = call;
    const sinceMs = services.clock.now() - signatureFailuresKeptMs;
    const { entries, ...kept } = await services.signatureFailures.of(caller.organization.id, idOf(source), sinceMs);
    return {
      data: entries.map((entry) => toRecord(entry, source.spec.provider)),
      requests: kept.requests,
      since: isoTimeOrNull(kept.sinceMs),
    };
  },
});

function toRecord(entry: SignatureFailureEntry, provider: Provider): z.input<typeof failure> {
  return {
    reason: entry.reason,
    ...signatureFailureInWords(entry, provider),
    header: entry.header ?? null,
    secondsBehind: entry.secondsBehind ?? null,
    refused: entry.isRefused,
    address: entry.address,
    userAgent: entry.userAgent,
    requests: entry.requests,
    firstAt: isoTime(entry.firstAtMs),
    lastAt: isoTime(entry.lastAtMs),
  };
}
