import { digestFromHex, hmacKeys, isSignedByAny, isTimely } from './hmac.ts';
import type { Verifier } from './signed-request.ts';

const version = 'v0';

/**
 * `X-Slack-Signature: v0=<hex HMAC-SHA256>` over `v0:<X-Slack-Request-Timestamp>:<body>`
 * (https://docs.slack.dev/authentication/verifying-requests-from-slack).
 */
export function slackVerifier(secrets: readonly string[]): Verifier {
  const keys = hmacKeys(secrets);
  return ({ headers, body, nowMs }) => {
    const { 'x-slack-signature': header, 'x-slack-request-timestamp': seconds } = headers;
    if (typeof header !== 'string' || typeof seconds !== 'string' || !header.startsWith(`${version}=`)) return false;
    const signature = digestFromHex(header.slice(version.length + 1));
    return signature !== null && isTimely(seconds, nowMs) && isSignedByAny(keys, `${version}:${seconds}:`, body, [signature]);
  };
}
