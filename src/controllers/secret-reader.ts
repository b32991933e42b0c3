import type { Refusal } from '../compile/compiled.ts';
import type { SecretReference } from '../compile/destination-secrets.ts';
import { isPosthornError } from '../core/errors.ts';
import { isSealed, type Keyring } from '../core/sealing.ts';
import { secretSealingContext } from '../core/sealing-contexts.ts';
import type { ResourceStore } from '../store/store.ts';

export const secretNotFound = 'SecretNotFound';

export type SecretValue = { value: string; unresolved?: undefined } | { value?: undefined; unresolved: Refusal };

/** Reads values behind `secretKeyRef`s; opens those that the facade has sealed. Keeps nothing. */
export class SecretReader {
  readonly #store: Pick<ResourceStore, 'get'>;
  readonly #keyring: Keyring;

  constructor(store: Pick<ResourceStore, 'get'>, keyring: Keyring) {
    this.#store = store;
    this.#keyring = keyring;
  }

  async read(organizationId: string, namespace: string, { name, key }: SecretReference): Promise<SecretValue> {
    let encoded: string | undefined;
    try {
      encoded = (await this.#store.get('Secret', { namespace, name })).data?.[key];
    } catch (error) {
      if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
      return { unresolved: { reason: secretNotFound, message: `Secret ${name} does not exist` } };
    }
    if (encoded === undefined) return { unresolved: { reason: 'SecretKeyNotFound', message: `Secret ${name} has no key ${key}` } };
    const value = Buffer.from(encoded, 'base64').toString('utf8');
    if (!isSealed(value)) return { value };
    try {
      return { value: this.#keyring.open(value, secretSealingContext(organizationId, name, key)) };
    } catch {
      const message = `key ${key} of Secret ${name} is sealed and does not open with the encryption keys of this installation`;
      return { unresolved: { reason: 'SecretNotReadable', message } };
    }
  }
}
