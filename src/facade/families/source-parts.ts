import { kinds, type SpecOf } from '../../resources/kinds.ts';

const { provider, verification, handshake, allowedMethods } = kinds.Source.spec.shape;

/** What records of a source and portable documents have in common. */
export const sourceParts = {
  provider: provider.unwrap(),
  verification: verification.unwrap().nullable().describe('How the sender signs; null unless the provider is custom.'),
  allowedMethods: allowedMethods.unwrap(),
  handshake: handshake
    .unwrap()
    .shape.type.nullable()
    .describe('The question that the source answers; null: none but that of the provider.'),
};

export function rejectsInvalid({ rejectInvalidSignatures, signingSecretRef }: SpecOf<'Source'>): boolean {
  return rejectInvalidSignatures ?? signingSecretRef !== undefined;
}
