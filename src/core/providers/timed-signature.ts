import type { Verifier } from './descriptor.ts';
import { digestFromHex, hmacKeys, signedByAny, timeFailure } from './hmac.ts';
import { headerMalformed, headerMissing } from './signature-failure.ts';

/** A time and hexadecimal HMAC-SHA256s of time and body in one header. */
interface TimedSignature {
  header: string;
  /** Between the items `name=value` of the header. */
  separator: string;
  time: string;
  signature: string;
  /** Between time and body in what is signed. */
  joint: string;
}

/** Any of the signatures may be right; other schemes in the header are ignored. */
export function timedSignatureVerifier(scheme: TimedSignature, secrets: readonly string[]): Verifier {
  const keys = hmacKeys(secrets);
  return function* ({ headers, body, nowMs }) {
    const header = headers[scheme.header];
    if (typeof header !== 'string') return headerMissing(scheme.header);
    let seconds = '';
    const signatures: Buffer[] = [];
    for (const item of header.split(scheme.separator)) {
      const [name, value = ''] = item.trim().split('=', 2);
      if (name === scheme.time) seconds = value;
      if (name !== scheme.signature) continue;
      const signature = digestFromHex(value);
      if (signature !== null) signatures.push(signature);
    }
    if (signatures.length === 0) return headerMalformed(scheme.header);
    return timeFailure(scheme.header, seconds, nowMs) ?? (yield* signedByAny(keys, { prefix: seconds + scheme.joint, body }, signatures));
  };
}
