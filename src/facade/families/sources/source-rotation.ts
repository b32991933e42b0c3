import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { looksMasked } from '../../../core/masking.ts';
import { hasStandardSecrets, ownProvider, type Provider, providers } from '../../../core/providers/providers.ts';
import { verificationSecretRule, verificationSecretsIn } from '../../../core/verification-secrets.ts';
import type { PosthornObject } from '../../../resources/kinds.ts';
import { type Call, type Operation, operation } from '../../http/operation.ts';
import { readSecret } from '../../records/read-secret.ts';
import { isoTime, timestamp } from '../../records/record-fields.ts';
import { changeRecord } from '../../records/resource-writes.ts';
import { secretMadeBefore } from '../../records/secret-draft.ts';

const defaultGraceSeconds = 3600;
const longestGraceSeconds = 86_400;

const body = z.strictObject({
  signingSecret: z
    .string()
    .min(1)
    .max(4096)
    .optional()
    .describe('The new secret. Generated when absent, unless the provider generates it, or the source verifies with a public key.'),
  gracePeriodSeconds: z
    .int()
    .min(0)
    .max(longestGraceSeconds)
    .optional()
    .describe('How long signatures of the old secret are taken too; default 3600, 0 ends all old ones at once.'),
});

const answer = z
  .object({
    signingSecret: z.string().describe('The new secret; shown only here.'),
    previousSecretExpiresAt: timestamp.nullable().describe('null: the old secret is not taken any more, or there was none.'),
  })
  .meta({ id: 'RotatedSecret' });

export const rotateSourceSecret: Operation = operation({
  method: 'POST',
  path: '/sources/{id}/rotate-secret',
  operationId: 'rotateSourceSecret',
  summary: 'Replace the signing secret of a source',
  description: 'One old secret holds at a time: while it does, the next rotation is 409 unless gracePeriodSeconds is 0.',
  scope: 'write',
  body,
  requestExample: { gracePeriodSeconds: 3600 },
  answer: { status: 200, description: 'The new secret is active.', schema: answer },
  errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED', 'CONFLICT'],
  handle: async (call) => {
    const { signingSecret: sent, gracePeriodSeconds = defaultGraceSeconds } = call.body;
    const validUntilMs = call.services.clock.now() + gracePeriodSeconds * 1000;
    let signingSecret = '';
    let previousSecretExpiresAt: string | null = null;
    await changeRecord(
      {
        kind: 'Source',
        immutable: {},
        toSpec: async ({ current, secrets }) => {
          const spec = current?.spec;
          const previousSecretRef = spec?.signingSecretRef;
          const made =
            current === undefined || previousSecretRef === undefined ? null : await secretMadeBefore(call, current, previousSecretRef);
          if (made !== null) {
            signingSecret = made;
            previousSecretExpiresAt = spec?.rotation?.validUntil ?? null;
            return { ...spec };
          }
          if (spec?.provider === ownProvider) throw noSecret();
          if (sent !== undefined) refuseUnusableSecret(spec?.provider ?? 'generic', sent);
          signingSecret = sent ?? (await newSecretFor(call, current));
          const signingSecretRef = await secrets.put('signingSecret', signingSecret, previousSecretRef);
          if (previousSecretRef?.name === signingSecretRef.name && previousSecretRef.key === signingSecretRef.key)
            throw new PosthornError('VALIDATION_FAILED', 'signingSecret is already the secret of the source.');
          const isKept = previousSecretRef !== undefined && gracePeriodSeconds > 0;
          if (isKept) refuseWhileRotating(call, spec?.rotation?.validUntil);
          previousSecretExpiresAt = isKept ? isoTime(validUntilMs) : null;
          const rotation = isKept ? { previousSecretRef, validUntil: isoTime(validUntilMs) } : undefined;
          return { ...spec, signingSecretRef, rotation };
        },
      },
      call,
      {},
    );
    return { signingSecret, previousSecretExpiresAt };
  },
});

/** The secret before holds until the time that was announced, and a source keeps one. */
function refuseWhileRotating({ services }: Call, validUntil: string | undefined): void {
  if (validUntil === undefined || Date.parse(validUntil) <= services.clock.now()) return;
  throw new PosthornError(
    'CONFLICT',
    `The secret before this one holds until ${validUntil}: rotate then, or with gracePeriodSeconds 0, which ends all earlier ones.`,
  );
}

function noSecret(): PosthornError {
  return new PosthornError('VALIDATION_FAILED', `signingSecret: a source of provider ${ownProvider} has none.`);
}

/** VALIDATION_FAILED for a secret that the provider cannot have made. `SentSecrets.put` validates masks. */
export function refuseUnusableSecret(provider: Provider, secret: string): void {
  if (provider === ownProvider) throw noSecret();
  if (looksMasked(secret)) return;
  if (hasStandardSecrets(provider)) {
    const { problem } = verificationSecretsIn(secret);
    if (problem !== undefined) throw new PosthornError('VALIDATION_FAILED', `signingSecret ${problem.replace(/^is not/, 'must be')}.`);
  } else if (/^\s*$/.test(secret)) throw new PosthornError('VALIDATION_FAILED', 'signingSecret must not be blank.');
}

/** VALIDATION_FAILED when the secret that a source has cannot be one of the provider that it is to have. */
export async function refuseStoredSecret(call: Call, provider: Provider, object: PosthornObject<'Source'>): Promise<void> {
  const ref = object.spec.signingSecretRef;
  if (ref !== undefined && provider === ownProvider) throw noSecret();
  if (ref === undefined || !hasStandardSecrets(provider)) return;
  const stored = await readSecret(call, object, ref);
  if (stored === null || verificationSecretsIn(stored).problem === undefined) return;
  throw new PosthornError(
    'VALIDATION_FAILED',
    `The stored secret cannot be one of ${provider}: send signingSecret too, ${verificationSecretRule}, or null to have none.`,
  );
}

/** VALIDATION_FAILED where it comes from the sender: from the provider, or with the public key that the source has. */
async function newSecretFor(call: Call, source: PosthornObject<'Source'> | undefined): Promise<string> {
  const provider = source?.spec.provider ?? 'generic';
  const ref = source?.spec.signingSecretRef;
  if (source !== undefined && ref !== undefined && hasStandardSecrets(provider)) {
    const found = verificationSecretsIn((await readSecret(call, source, ref)) ?? '');
    if (found.problem === undefined && found.publicKeys.length > 0)
      throw new PosthornError(
        'VALIDATION_FAILED',
        'signingSecret is required: the source verifies with a public key, which its sender makes.',
      );
  }
  return newSecretOf(provider);
}

/** VALIDATION_FAILED for providers whose secrets come from themselves. */
function newSecretOf(provider: Provider): string {
  const { isOurs, style } = providers[provider].secret;
  if (!isOurs) throw new PosthornError('VALIDATION_FAILED', `signingSecret is required: ${provider} generates its own secrets.`);
  return style === 'text' ? randomBytes(32).toString('hex') : `whsec_${randomBytes(32).toString('base64')}`;
}
