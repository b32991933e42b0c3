import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { looksMasked, masked, maskedUnread } from '../../../core/masking.ts';
import { defaultSignatureScheme, type SignatureScheme, signingSecretsFor, signingSecretsIn } from '../../../core/signature-scheme.ts';
import { kinds, type PosthornObject } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { readToShow } from '../../records/read-secret.ts';
import type { SpecInput } from '../../records/resource-family-definition.ts';
import { shownField, specField, textOf } from '../../records/spec-field.ts';
import { awaitedSecretToSpec } from '../shared/awaited-secret.ts';
import { publicKeyFields } from '../shared/public-keys.ts';
import { signingKeysOrMask } from '../shared/signing-secret-fields.ts';

type Http = NonNullable<PosthornObject<'Destination'>['spec']['http']>;

const http = kinds.Destination.spec.shape.http.unwrap().shape;

/** Fields of the record of an HTTP destination that configure signing. */
export const signingRecord = {
  signingSecret: z.string().nullable().optional().describe('Deliveries are signed with it; masked, null when there is none.'),
  signatureScheme: shownField(http.signatureScheme).optional(),
  publicKey: publicKeyFields.publicKey.optional(),
  previousPublicKeys: publicKeyFields.previousPublicKeys.optional(),
  awaitsSigningSecret: shownField(http.awaitsSigningSecret).optional(),
};

const unused = { signatureScheme: defaultSignatureScheme, awaitsSigningSecret: false };

/** `names`: fields of the body. `unused`: defaults, which clients send for warehouses, too. `shown`: example of the record. */
export const signingFields = {
  names: ['signingSecret', 'signatureScheme', 'awaitsSigningSecret'],
  unused,
  shown: { signingSecret: null, ...unused, publicKey: null, previousPublicKeys: [] },
} as const;

export const signingBody = {
  signingSecret: signingKeysOrMask
    .nullable()
    .optional()
    .describe('Deliveries are signed with it (Standard Webhooks): whsec_ secrets for v1, whsk_ keys for v1a. null removes it.'),
  signatureScheme: specField(http.signatureScheme, `${textOf(http.signatureScheme)} What it signs with must be in signingSecret.`).meta({
    default: defaultSignatureScheme,
  }),
  awaitsSigningSecret: specField(http.awaitsSigningSecret).meta({ default: false }),
};

export async function signingToRecord(
  object: PosthornObject<'Destination'>,
  { signingSecretRef, signatureScheme = defaultSignatureScheme, awaitsSigningSecret = false }: Http,
  call: Call,
) {
  const value = signingSecretRef === undefined ? null : await readToShow(call, object, signingSecretRef);
  const found = value === null ? null : signingSecretsIn(value);
  const [current, ...previous] = found === null || found.problem !== undefined ? [] : found.keys;
  return {
    signingSecret: signingSecretRef === undefined ? null : value === null ? maskedUnread : masked(value),
    signatureScheme,
    awaitsSigningSecret: awaitsSigningSecret && signingSecretRef === undefined,
    publicKey: current?.publicKey ?? null,
    previousPublicKeys: previous.map(({ publicKey }) => ({ publicKey, expiresAt: null })),
  };
}

interface Sent {
  signingSecret?: string | null | undefined;
  signatureScheme?: SignatureScheme | undefined;
  awaitsSigningSecret?: boolean | undefined;
  enabled?: boolean | undefined;
}

/** Throws VALIDATION_FAILED for invalid keys, and for a scheme without a key to sign with. */
export async function signingToSpec(
  { signingSecret: sentSecret, signatureScheme: sentScheme, awaitsSigningSecret, enabled }: Sent,
  { current, call, secrets }: Pick<SpecInput<'Destination', z.ZodObject>, 'current' | 'call' | 'secrets'>,
): Promise<Pick<Http, 'signingSecretRef' | 'signatureScheme' | 'awaitsSigningSecret'>> {
  const { signingSecretRef: storedRef, signatureScheme: stored } = current?.spec.http ?? {};
  const before = stored ?? defaultSignatureScheme;
  const scheme = sentScheme ?? before;
  const staysAs = sentSecret === undefined || (sentSecret !== null && looksMasked(sentSecret)) ? storedRef : undefined;
  if (staysAs !== undefined) {
    const kept = current !== undefined && scheme !== before ? await readToShow(call, current, staysAs) : null;
    if (kept !== null) refuseUnlessSigning('the stored signingSecret', kept, scheme);
  } else if (typeof sentSecret === 'string' && !looksMasked(sentSecret)) refuseUnlessSigning('signingSecret', sentSecret, scheme);
  else if (scheme !== defaultSignatureScheme) throw refusal(`signatureScheme ${scheme} needs a signingSecret`);
  const signingSecretRef =
    typeof sentSecret === 'string'
      ? await secrets.put('signingSecret', sentSecret, storedRef)
      : sentSecret === null
        ? undefined
        : storedRef;
  return {
    signingSecretRef,
    awaitsSigningSecret: awaitedSecretToSpec({
      stored: current?.spec.http?.awaitsSigningSecret,
      sent: awaitsSigningSecret,
      sentSecret,
      hasSecret: signingSecretRef !== undefined,
      isEnabled: enabled ?? current?.spec.enabled ?? true,
    }),
    // The schema has no default, so the default that a client sends back as it was shown changes nothing.
    signatureScheme: scheme === before ? stored : scheme,
  };
}

function refuseUnlessSigning(name: string, value: string, scheme: SignatureScheme): void {
  const { problem } = signingSecretsFor(value, scheme);
  if (problem !== undefined) throw refusal(`${name} ${problem}`);
}

function refusal(complaint: string): PosthornError {
  return new PosthornError('VALIDATION_FAILED', `${complaint}.`, { details: { signingSecret: [complaint] } });
}
