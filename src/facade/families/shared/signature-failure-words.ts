import { toleranceSeconds } from '../../../core/providers/hmac.ts';
import { type Provider, providers } from '../../../core/providers/providers.ts';
import type { SignatureFailure } from '../../../core/providers/signature-failure.ts';

const unchangedBody = 'A proxy on the way must not decompress, convert or re-encode the body.';

/** Why requests failed, and what to check or to do. */
export function signatureFailureInWords(
  { reason, header, secondsBehind = 0 }: SignatureFailure,
  provider: Provider,
): { message: string; advice: string } {
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
            advice:
              'Synchronize the clock of the sender. A request that waited, or that was recorded and sent again, must be signed again.',
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
        message: 'The handshake crc_token signs such a body for anybody, so its signature proves nothing.',
        advice: 'Let the sender send JSON, or remove the handshake of the source.',
      };
    case 'no_secret_matches':
      if (header !== undefined)
        return {
          message: `The header ${header} has no signature of a version for which the source has a secret or a key.`,
          advice: 'For v1 give the source the whsec_ secret of the sender, for v1a its whpk_ public key.',
        };
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
        message: 'A signing secret of the source cannot be decrypted, so signatures with it cannot be verified.',
        advice: 'Give ingest the encryption key with which the secret was sealed, or set the signing secret of the source again.',
      };
    default:
      return reason satisfies never;
  }
}
