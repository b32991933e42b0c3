import { z } from 'zod';
import { timestamp } from '../../records/record-fields.ts';

/** How records show the public keys of Ed25519 keys; both are empty where there is none. */
export const publicKeyFields = {
  publicKey: z
    .string()
    .nullable()
    .describe('Verifies the v1a signatures: `whpk_` followed by the base64 of an Ed25519 public key. Null: there is no key.'),
  previousPublicKeys: z
    .array(
      z
        .object({
          publicKey: z.string().describe('`whpk_` followed by base64.'),
          expiresAt: timestamp.nullable().describe('When it stops signing. Null: as long as it is in the Secret.'),
        })
        .meta({ id: 'PreviousPublicKey' }),
    )
    .describe('Of earlier keys that still sign, the last one first.'),
};
