import { z } from 'zod';
import { kinds, type SpecOf } from '../../../resources/kinds.ts';
import { shownField } from '../../records/spec-field.ts';
import { intakeRecord } from './source-intake.ts';

const { provider, verification, handshake, allowedMethods } = kinds.Source.spec.shape;

export const handshakeType = handshake.unwrap().shape.type;
export const shownVerification = verification
  .unwrap()
  .meta({ id: 'SourceVerification', description: 'How the sender signs: an HMAC of the body.' });

const parts = {
  provider: shownField(provider),
  verification: shownVerification.nullable().describe('How the sender signs; null unless the provider is custom.'),
  allowedMethods: shownField(allowedMethods),
  handshake: handshakeType.nullable().describe('The question that the source answers; null: none but that of the provider.'),
  rejectInvalidSignatures: z.boolean().describe('Whether a wrong or missing signature is answered by 401.'),
};

/** Settings of a source: all records of it and portable documents have them. */
export const sourceSettings = z
  .object({ ...parts, ...intakeRecord })
  .meta({ id: 'SourceSettings', description: 'How a source verifies and accepts requests.' });

/** Whether its import left out its signing secret and none was set since. */
export function awaitsSecret({ awaitsSigningSecret, signingSecretRef }: SpecOf<'Source'>): boolean {
  return awaitsSigningSecret === true && signingSecretRef === undefined;
}

export function rejectsInvalid({ rejectInvalidSignatures, signingSecretRef }: SpecOf<'Source'>): boolean {
  return rejectInvalidSignatures ?? signingSecretRef !== undefined;
}
