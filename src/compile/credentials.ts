import { type CredentialsRecord, recordLayoutVersion } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import type { SecretReference } from '../resources/secret-use.ts';
import { sealValue } from './sealed-value.ts';

/** A value that an object may use, as its Secret holds it. */
export interface ReadCredential {
  reference: SecretReference;
  value: string;
  /** The API made the Secret for this object. */
  isMadeByApi: boolean;
}

export interface CredentialsInputs {
  /** API ids of the object and its organization. */
  id: string;
  org: string;
  generation: number;
  keyring: Keyring;
  /** The published record. The compiler reuses an envelope of it that holds the same value. */
  published: CredentialsRecord | null;
}

/** Parts of an object's Secrets that the API shows and merges. */
export function compileCredentials(read: readonly ReadCredential[], inputs: CredentialsInputs): CredentialsRecord {
  const { id, org, generation, keyring, published } = inputs;
  const context = recordSealingContext(org, 'credentials', id, 'value');
  const envelopes = published?.values.map(({ sealed }) => sealed) ?? [];
  const values = read.map(({ reference: { name, key }, value, isMadeByApi }) => ({
    secret: name,
    key,
    sealed: sealValue(value, context, envelopes, keyring),
    isMadeByApi,
  }));
  return { v: recordLayoutVersion, id, org, values, generation };
}
