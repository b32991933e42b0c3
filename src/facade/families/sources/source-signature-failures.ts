import { z } from 'zod';
import { toleranceSeconds } from '../../../core/providers/hmac.ts';
import { type Provider, providers } from '../../../core/providers/providers.ts';
import { signatureFailureReasons } from '../../../core/providers/signature-failure.ts';
import { maxSignatureFailures, type SignatureFailureEntry, signatureFailuresKeptMs } from '../../../data/intake/signature-failures.ts';
import { operation } from '../../http/operation.ts';
import { findToRead, idOf } from '../../records/lookup.ts';
import { isoTime, isoTimeOrNull, timestamp } from '../../records/record-fields.ts';

const failure = z
  .object({
    reason: z.enum(signatureFailureReasons).describe('Why no secret of the source vouches for the requests.'),
    message: z.string().describe('The same in words.'),
    advice: z.string().describe('What to check, or to do.'),
    header: z.string().nullable().describe('The header that is missing or wrong, in lower case; null: the reason is none of a header.'),
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
  description: `The last ${maxSignatureFailures} failures by reason and address, for 24 hours after the last request of each. They are there about a second after the request. Senders are not told the reason.`,
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
    ...inWords(entry, provider),
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

const unchangedBody = 'A proxy on the way must not decompress, convert or re-encode the body.';

function inWords({ reason, header, secondsBehind = 0 }: SignatureFailureEntry, provider: Provider): { message: string; advice: string } {
  const { docs } = providers[provider];
  const sends = `A source of provider ${provider} expects ${docs.header.replaceAll('`', '')}.`;
  switch (reason) {
    case 'header_missing':
      return {
        message: `The request has no header ${header}.`,
        advice: `Let the sender sign its requests, and check that no proxy removes the header. ${sends}`,
      };
    case 'header_malformed':
      return { message: `The header ${header} does not have the form of the provider ${provider}.`, advice: sends };
    case 'timestamp_malformed':
      return {
        message: `The header ${header} has no time in seconds since the epoch.`,
        advice: `The sender must sign the time in seconds, not in milliseconds or as a date. ${sends}`,
      };
    case 'timestamp_outside_tolerance':
      return secondsBehind > 0
        ? {
            message: `The time that was signed is ${secondsBehind} s old; ${toleranceSeconds} s are allowed.`,
            advice: 'Synchronize the clock of the sender. A request that waited, or that was recorded and sent again, must be signed anew.',
          }
        : {
            message: `The time that was signed is ${-secondsBehind} s in the future; ${toleranceSeconds} s are allowed.`,
            advice: 'Synchronize the clocks of the sender and of the servers of Posthorn.',
          };
    case 'body_not_covered':
      return {
        message: 'The signature does not cover the body: it is no form, or one with too many fields, and the URL has no bodySHA256.',
        advice: `No proxy may change the Content-Type or the query of the request. ${unchangedBody}`,
      };
    case 'body_digest_mismatch':
      return { message: 'The body is not the one whose digest the URL has as bodySHA256.', advice: unchangedBody };
    case 'body_is_handshake_token':
      return {
        message: 'The body is a text that the handshake crc_token signs for whoever asks, so a signature of it proves nothing.',
        advice: 'Let the sender send JSON, or remove the handshake of the source.',
      };
    case 'no_secret_matches':
      return {
        message: 'No secret of the source makes the signature that was sent.',
        advice: `The source needs ${docs.secret.replaceAll('`', '')}: set it again, without blanks around it. ${unchangedBody}${
          provider === 'twilio' ? ' The signature covers the URL: POSTHORN_PUBLIC_INGEST_URL must be the address that Twilio calls.' : ''
        }`,
      };
    case 'no_secret':
      return {
        message: 'The source refuses what is not signed, and has no signing secret.',
        advice: 'Set the signing secret of the source, or let it accept invalid signatures.',
      };
    case 'secret_unreadable':
      return {
        message: 'A signing secret of the source cannot be decrypted, so nobody can tell whether the request is signed with it.',
        advice: 'Give ingest the encryption key with which the secret was sealed, or set the signing secret of the source again.',
      };
    default:
      return reason satisfies never;
  }
}
