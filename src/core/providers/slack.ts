import type { ProviderDescriptor, Verifier } from './descriptor.ts';
import { digestFromHex, hmacKeys, isTimely, signedByAny } from './hmac.ts';

const version = 'v0';

/**
 * `X-Slack-Signature: v0=<hex HMAC-SHA256>` over `v0:<X-Slack-Request-Timestamp>:<body>`
 * (https://docs.slack.dev/authentication/verifying-requests-from-slack).
 */
function slackVerifier(secrets: readonly string[]): Verifier {
  const keys = hmacKeys(secrets);
  return function* ({ headers, body, nowMs }) {
    const { 'x-slack-signature': header, 'x-slack-request-timestamp': seconds } = headers;
    if (typeof header !== 'string' || typeof seconds !== 'string' || !header.startsWith(`${version}=`)) return null;
    const signature = digestFromHex(header.slice(version.length + 1));
    if (signature === null || !isTimely(seconds, nowMs)) return null;
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
