import { hmacKeys, isSignedByAny, isTimely, sha256FromHex } from './hmac.ts';
import type { Verifier } from './signed-request.ts';

/**
 * `Stripe-Signature: t=<seconds>,v1=<hex>[,v1=<hex>]`, over `<t>.<body>` with the endpoint's secret as it is shown
 * (`whsec_…`); other schemes such as `v0` are ignored (https://docs.stripe.com/webhooks#verify-manually).
 */
export function stripeVerifier(secrets: readonly string[]): Verifier {
  const keys = hmacKeys(secrets);
  return ({ headers, body, nowMs }) => {
    const header = headers['stripe-signature'];
    if (typeof header !== 'string') return false;
    let seconds = '';
    const signatures: Buffer[] = [];
    for (const item of header.split(',')) {
      const [scheme, value = ''] = item.trim().split('=', 2);
      if (scheme === 't') seconds = value;
      if (scheme !== 'v1') continue;
      const signature = sha256FromHex(value);
      if (signature !== null) signatures.push(signature);
    }
    return isTimely(seconds, nowMs) && isSignedByAny(keys, `${seconds}.`, body, signatures);
  };
}
