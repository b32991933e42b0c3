import type { ProviderDescriptor, Verifier } from './descriptor.ts';
import { digestFromHex, hmacKeys, signedByAny, timeFailure } from './hmac.ts';
import { headerMalformed, headerMissing } from './signature-failure.ts';

const version = 'v0';
const signatureHeader = 'x-slack-signature';
const timeHeader = 'x-slack-request-timestamp';

/**
 * `X-Slack-Signature: v0=<hex HMAC-SHA256>` over `v0:<X-Slack-Request-Timestamp>:<body>`
 * (https://docs.slack.dev/authentication/verifying-requests-from-slack).
 */
function slackVerifier(secrets: readonly string[]): Verifier {
  const keys = hmacKeys(secrets);
  return function* ({ headers, body, nowMs }) {
    const { [signatureHeader]: header, [timeHeader]: seconds } = headers;
    if (typeof header !== 'string') return headerMissing(signatureHeader);
    if (typeof seconds !== 'string') return headerMissing(timeHeader);
    const signature = header.startsWith(`${version}=`) ? digestFromHex(header.slice(version.length + 1)) : null;
    if (signature === null) return headerMalformed(signatureHeader);
    const failure = timeFailure(timeHeader, seconds, nowMs);
    if (failure !== null) return failure;
    return yield* signedByAny(keys, { prefix: `${version}:${seconds}:`, body }, [signature]);
  };
}

export const slack: ProviderDescriptor = {
  title: 'Slack',
  url: 'https://docs.slack.dev/authentication/verifying-requests-from-slack',
  verifier: slackVerifier,
  secret: { style: 'text', isOurs: false },
  deliveryIds: [{ field: 'event_id' }],
  distinctContents: 'always',
  // https://docs.slack.dev/reference/events/url_verification
  handshake: { type: 'challenge_body', bodyType: 'url_verification' },
  docs: {
    header: '`X-Slack-Signature: v0=<hex>`, `X-Slack-Request-Timestamp`',
    signed: '`v0:<seconds>:<body>`',
    secret: 'the signing secret of the app',
    recognized: 'all: an id and a time are signed',
    unrecognized: '',
  },
};
