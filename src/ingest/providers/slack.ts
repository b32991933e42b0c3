import { digestFromHex, hmacKeys, isTimely, signedByAny } from './hmac.ts';
import type { Verifier } from './signed-request.ts';

const version = 'v0';

/**
 * `X-Slack-Signature: v0=<hex HMAC-SHA256>` over `v0:<X-Slack-Request-Timestamp>:<body>`
 * (https://docs.slack.dev/authentication/verifying-requests-from-slack).
 */
export function slackVerifier(secrets: readonly string[]): Verifier {
  const keys = hmacKeys(secrets);
  return function* ({ headers, body, nowMs }) {
    const { 'x-slack-signature': header, 'x-slack-request-timestamp': seconds } = headers;
    if (typeof header !== 'string' || typeof seconds !== 'string' || !header.startsWith(`${version}=`)) return null;
    const signature = digestFromHex(header.slice(version.length + 1));
    if (signature === null || !isTimely(seconds, nowMs)) return null;
    return yield* signedByAny(keys, { prefix: `${version}:${seconds}:`, body }, [signature]);
  };
}
