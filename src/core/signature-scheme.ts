import { type Ed25519Key, ed25519Key, publicKeyPrefix, signingKeyPrefix, signingKeyRule } from './ed25519-keys.ts';
import {
  listedSecrets,
  maxListedSecrets,
  standardWebhooksSecretRule,
  standardWebhooksSecrets,
  tooManySecrets,
} from './standard-webhooks-secrets.ts';

/** Which signatures requests carry: `hmac-sha256` is v1 of Standard Webhooks, `ed25519` is v1a, `both` is one header with both. */
export const signatureSchemes = ['hmac-sha256', 'ed25519', 'both'] as const;
export type SignatureScheme = (typeof signatureSchemes)[number];

export const defaultSignatureScheme: SignatureScheme = 'hmac-sha256';

/** A `whsk_` key as it was written, with its public key. */
export interface NamedSigningKey extends Pick<Ed25519Key, 'publicKey'> {
  text: string;
}

/** Signing keys in a value of a Secret; of each kind the current one first. */
export interface SigningSecrets {
  problem?: undefined;
  /** `whsec_…` */
  secrets: string[];
  /** `whsk_…` */
  keys: NamedSigningKey[];
}

export const signingSecretRule = `${standardWebhooksSecretRule}, or ${signingKeyRule}`;

/**
 * The secrets and keys in a value of a Secret, separated by white space. `problem` continues a sentence about the value: one of them is malformed, or what
 * the scheme signs with is not among them.
 */
export function signingSecretsFor(value: string, scheme: SignatureScheme): SigningSecrets | { problem: string } {
  const found = signingSecretsIn(value);
  if (found.problem !== undefined) return found;
  const needs = (what: string) => ({ problem: `contains no ${what}, which signatureScheme ${scheme} needs` });
  if (scheme !== 'ed25519' && found.secrets.length === 0) return needs('whsec_ secret');
  if (scheme !== 'hmac-sha256' && found.keys.length === 0) return needs(`${signingKeyPrefix} key`);
  return found;
}

/** The same without a scheme: what of both kinds is there. */
export function signingSecretsIn(value: string): SigningSecrets | { problem: string } {
  const texts = listedSecrets(value);
  if (texts === null) return { problem: tooManySecrets };
  const secrets: string[] = [];
  const keys: NamedSigningKey[] = [];
  for (const text of texts) {
    if (text.startsWith(publicKeyPrefix)) return { problem: `contains a ${publicKeyPrefix} key, which is public and signs nothing` };
    if (!text.startsWith(signingKeyPrefix)) {
      if (standardWebhooksSecrets(text) === null) return { problem: `is not ${signingSecretRule}` };
      secrets.push(text);
      continue;
    }
    const key = ed25519Key(text);
    if (key.problem !== undefined) return { problem: `contains a ${signingKeyPrefix} key that ${key.problem}` };
    keys.push({ text, publicKey: key.publicKey });
  }
  return texts.length === 0 ? { problem: `is not ${signingSecretRule}` } : { secrets, keys };
}

/** The texts of those that sign under the scheme, the current one of each kind before its earlier ones. */
export function signingTexts({ secrets, keys }: SigningSecrets, scheme: SignatureScheme): string[] {
  return [...(scheme === 'ed25519' ? [] : secrets), ...(scheme === 'hmac-sha256' ? [] : keys.map(({ text }) => text))];
}

/**
 * Opens the texts that `signingTexts` returned: of each kind at most as many as a value may list, the first ones. Records of earlier releases may have
 * thousands.
 */
export function openedSigningTexts(sealed: readonly string[], open: (sealed: string) => string): string[] {
  if (sealed.length <= maxListedSecrets) return sealed.map(open);
  let [firstKey, end] = [0, sealed.length];
  while (firstKey < end) {
    const middle = Math.floor((firstKey + end) / 2);
    const [text = ''] = sealed.slice(middle, middle + 1).map(open);
    if (text.startsWith(signingKeyPrefix)) end = middle;
    else firstKey = middle + 1;
  }
  const secrets = sealed.slice(0, Math.min(firstKey, maxListedSecrets));
  return [...secrets, ...sealed.slice(firstKey, firstKey + maxListedSecrets)].map(open);
}
