import { ed25519PublicKey, publicKeyPrefix, publicKeyRule, signingKeyPrefix } from './ed25519-keys.ts';
import { listedSecrets, standardWebhooksSecretRule, standardWebhooksSecrets, tooManySecrets } from './standard-webhooks-secrets.ts';

/** Keys in a value of a Secret that verify signatures of Standard Webhooks, in its order. */
export interface VerificationSecrets {
  problem?: undefined;
  /** `whsec_…`, for v1. */
  secrets: string[];
  /** `whpk_…`, for v1a. They are public. */
  publicKeys: string[];
}

export const verificationSecretRule = `${standardWebhooksSecretRule}, or ${publicKeyRule}`;

/** The secrets and public keys in a value, separated by white space. `problem` continues a sentence about the value and never shows its content. */
export function verificationSecretsIn(value: string): VerificationSecrets | { problem: string } {
  const texts = listedSecrets(value);
  if (texts === null) return { problem: tooManySecrets };
  const secrets: string[] = [];
  const publicKeys: string[] = [];
  for (const text of texts) {
    if (text.startsWith(signingKeyPrefix))
      return {
        problem: `contains a ${signingKeyPrefix} key, which is the sender's alone: a source needs the ${publicKeyPrefix} key of it`,
      };
    if (text.startsWith(publicKeyPrefix) && ed25519PublicKey(text) !== null) publicKeys.push(text);
    else if (standardWebhooksSecrets(text) !== null) secrets.push(text);
    else return { problem: `is not ${verificationSecretRule}` };
  }
  return texts.length === 0 ? { problem: `is not ${verificationSecretRule}` } : { secrets, publicKeys };
}
