import { z } from 'zod';
import { maskPattern } from '../../../core/masking.ts';
import { signingSecretRule } from '../../../core/signature-scheme.ts';
import { listedSecrets, standardWebhooksSecretRule, tooManySecrets } from '../../../core/standard-webhooks-secrets.ts';

const digit = '[A-Za-z0-9+/]';
/** Base64 of 24 to 64 bytes that has no bits left over, as `standardWebhooksSecrets` takes it. */
const encoded = `(?:(?:${digit}{4}){8,21}(?:${digit}[AQgw])?|(?:${digit}{4}){8,20}${digit}{2}[AEIMQUYcgkosw048])={0,2}`;
const secret = `whsec_${encoded}`;
/** Base64 of 32 or 64 bytes, as `ed25519Key` takes it. */
const key = `whsk_(?:${digit}{42}[AEIMQUYcgkosw048]|${digit}{85}[AQgw])={0,2}`;
const secretOrKey = `(?:${secret}|${key})`;

const several = 'while it is being replaced several of them, separated by blanks, which all sign';

/** A signing secret of Standard Webhooks as a Secret may hold it, or the mask of what is stored. */
export const signingSecretsOrMask = z
  .string()
  .max(1000)
  .regex(listOrMask(secret), `must be ${standardWebhooksSecretRule}`)
  .refine(isShortList, tooManySecrets)
  .meta({ id: 'SigningSecrets', description: `${standardWebhooksSecretRule}; ${several}.` });

/** The same where Ed25519 keys sign, too. */
export const signingKeysOrMask = z
  .string()
  .max(1000)
  .regex(listOrMask(secretOrKey), `must be ${signingSecretRule}`)
  .refine(isShortList, tooManySecrets)
  .meta({ id: 'SigningKeys', description: `${signingSecretRule}; ${several}.` });

function listOrMask(item: string): RegExp {
  return new RegExp(String.raw`^(?:\s*${item}(?:\s+${item})*\s*|${maskPattern})$`, 'u');
}

function isShortList(value: string): boolean {
  return listedSecrets(value) !== null;
}
