import { z } from 'zod';
import { maskPattern } from '../../../core/masking.ts';
import { standardWebhooksSecretRule } from '../../../core/standard-webhooks-secrets.ts';

const digit = '[A-Za-z0-9+/]';
/** Base64 of 24 to 64 bytes that has no bits left over, as `standardWebhooksSecrets` takes it. */
const encoded = `(?:(?:${digit}{4}){8,21}(?:${digit}[AQgw])?|(?:${digit}{4}){8,20}${digit}{2}[AEIMQUYcgkosw048])={0,2}`;
const secret = `whsec_${encoded}`;

const signingSecretsRule = `${standardWebhooksSecretRule}; while it is being replaced several of them, separated by blanks, which all sign`;

/** A signing secret of Standard Webhooks as a Secret may hold it, or the mask of what is stored. */
export const signingSecretsOrMask = z
  .string()
  .max(1000)
  .regex(new RegExp(String.raw`^(?:\s*${secret}(?:\s+${secret})*\s*|${maskPattern})$`, 'u'), `must be ${standardWebhooksSecretRule}`)
  .meta({ id: 'SigningSecrets', description: `${signingSecretsRule}.` });
