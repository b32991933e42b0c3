import type { KeyObject } from 'node:crypto';
import { defaultPayloadForm, type PayloadForm } from './payload-link.ts';
import { defaultSignatureScheme, type SignatureScheme } from './signature-scheme.ts';

/**
 * Deviations of an attempt's request from the default of its target. The default is the full payload: of a destination without a signature, of a webhook
 * endpoint with `defaultSignatureScheme`.
 */
export interface SentAs {
  isThin: boolean;
  /** Null: as is the default. */
  scheme: SignatureScheme | null;
}

export type SignedTarget = 'destination' | 'endpoint';

const schemesByDefault = { destination: null, endpoint: defaultSignatureScheme } satisfies Record<SignedTarget, SignatureScheme | null>;

/** Undefined: all is as is the default. */
export function sentAs(target: SignedTarget, { isThin, keys }: { isThin: boolean; keys: readonly KeyObject[] }): SentAs | undefined {
  const scheme = schemeOf(keys);
  const own = scheme === schemesByDefault[target] ? null : scheme;
  return isThin || own !== null ? { isThin, scheme: own } : undefined;
}

/** The whole of it. */
export function sentForm(
  target: SignedTarget,
  own: SentAs | undefined,
): { payloadForm: PayloadForm; signatureScheme: SignatureScheme | null } {
  return { payloadForm: own?.isThin === true ? 'thin' : defaultPayloadForm, signatureScheme: own?.scheme ?? schemesByDefault[target] };
}

/** Null: nothing signs. */
function schemeOf(keys: readonly KeyObject[]): SignatureScheme | null {
  const asymmetric = keys.some(isPrivate);
  const symmetric = !keys.every(isPrivate);
  if (asymmetric) return symmetric ? 'both' : 'ed25519';
  return symmetric ? 'hmac-sha256' : null;
}

function isPrivate({ type }: KeyObject): boolean {
  return type === 'private';
}
