import { isSealed, type Keyring, type SealingContext } from '../core/sealing.ts';
import type { SealedRecordField } from '../core/sealing-contexts.ts';

/** Seals a field of the record that is being compiled; `published` are the envelopes that the record before has in that field. */
export type Seal = (field: SealedRecordField, plain: string, published: readonly string[]) => string;

/**
 * Seals a value for a record. An envelope of the record published before is kept when it holds the same value, so that
 * compiling the same resource again gives the same record.
 */
export function sealValue(plain: string, context: SealingContext, published: readonly string[], keyring: Keyring): string {
  return published.find((envelope) => isSealed(envelope) && opensTo(plain, envelope, context, keyring)) ?? keyring.seal(plain, context);
}

function opensTo(plain: string, envelope: string, context: SealingContext, keyring: Keyring): boolean {
  try {
    return keyring.open(envelope, context) === plain;
  } catch {
    // sealed with a key that is gone, or for another context
    return false;
  }
}
