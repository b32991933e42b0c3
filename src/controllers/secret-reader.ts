import type { Refusal } from '../compile/compiled.ts';
import type { ReadCredential } from '../compile/credentials.ts';
import type { OrganizationFacts } from '../compile/organization.ts';
import { isPosthornError } from '../core/errors.ts';
import { RightsPending } from '../core/rights-pending.ts';
import { isSealed, type Keyring } from '../core/sealing.ts';
import { type CredentialField, secretSealingContext } from '../core/sealing-contexts.ts';
import type { SecretObject } from '../resources/kinds.ts';
import { isMadeByApi, madeForIn, type SecretReference, type SecretUser, secretRefusal, secretUsesIn } from '../resources/secret-use.ts';
import type { SecretStore } from '../store/store.ts';

const secretNotFound = 'SecretNotFound';

export type SecretValue = { value: string; unresolved?: undefined } | { value?: undefined; unresolved: Refusal };

type FoundSecret = { secret: SecretObject; unresolved?: undefined } | { secret?: undefined; unresolved: Refusal };

interface SecretReaderOptions {
  store: SecretStore;
  keyring: Keyring;
  /** Secrets of users need their label to be used. */
  requiresConsent: boolean;
  /** Called with the namespace in which the right to read Secrets is missing. */
  refused?(namespace: string): void;
}

/** The reader of values. `publishedOrigin`: as of `SecretUseRules`. */
export interface SecretsOwner {
  user: SecretUser;
  organization: OrganizationFacts;
  publishedOrigin(): Promise<string | null | undefined>;
}

/**
 * Reads values behind `secretKeyRef`s for the objects that may use them; opens those that the facade has sealed. Where the right to read is missing
 * it throws RightsPending. The published record stays in force, and the reconcile is retried with backoff.
 */
export class SecretReader {
  readonly #options: SecretReaderOptions;

  constructor(options: SecretReaderOptions) {
    this.#options = options;
  }

  /** For one reconciliation. */
  of(owner: SecretsOwner): ObjectSecrets {
    return new ObjectSecrets(this.#options, owner);
  }
}

/** The Secrets of one object, each read at most once. */
export class ObjectSecrets {
  readonly #options: SecretReaderOptions;
  readonly #owner: SecretsOwner;
  readonly #found = new Map<string, Promise<FoundSecret>>();

  constructor(options: SecretReaderOptions, owner: SecretsOwner) {
    this.#options = options;
    this.#owner = owner;
  }

  /** `field`: that of the record which takes the value. */
  async read(reference: SecretReference, field: CredentialField): Promise<SecretValue> {
    const { unresolved, value } = await this.#read(reference, field);
    return unresolved === undefined ? { value } : { unresolved };
  }

  /** All that the object may use of what it refers to, also where its type does not need it; null when it refers to no Secret. */
  async all(): Promise<ReadCredential[] | null> {
    const uses = secretUsesIn(this.#owner.user.spec);
    if (uses.length === 0) return null;
    const read = await Promise.all(uses.map(({ reference, field }) => this.#read(reference, field)));
    return read.flatMap((each) => (each.unresolved === undefined ? [each] : []));
  }

  async #read(
    reference: SecretReference,
    field: CredentialField,
  ): Promise<(ReadCredential & { unresolved?: undefined }) | { value?: undefined; unresolved: Refusal }> {
    const { name, key } = reference;
    const { user, organization, publishedOrigin } = this.#owner;
    const { keyring, requiresConsent } = this.#options;
    const { secret, unresolved } = await this.#secret(name);
    if (unresolved !== undefined) return { unresolved };
    const refusal = await secretRefusal(secret, user, { field, key }, { requiresConsent, publishedOrigin });
    if (refusal !== null) return refuse('SecretNotShared', refusal);
    const encoded = secret.data?.[key];
    if (encoded === undefined) return refuse('SecretKeyNotFound', `Secret ${name} has no key ${key}`);
    const read = { reference, isMadeByApi: isMadeByApi(secret) };
    // The store itself seals what it holds and leaves sealed what it cannot open.
    const value = isSealed(encoded) ? encoded : Buffer.from(encoded, 'base64').toString('utf8');
    if (!isSealed(value)) return { ...read, value };
    try {
      return { ...read, value: keyring.open(value, secretSealingContext(organization.id, name, key, madeForIn(secret.metadata))) };
    } catch {
      const message = `key ${key} of Secret ${name} cannot be decrypted: it was sealed with another encryption key, or for another object or URL`;
      return refuse('SecretNotReadable', message);
    }
  }

  #secret(name: string): Promise<FoundSecret> {
    const found = this.#found.get(name) ?? this.#find(name);
    this.#found.set(name, found);
    return found;
  }

  async #find(name: string): Promise<FoundSecret> {
    const { store, refused } = this.#options;
    const { namespace } = this.#owner.organization;
    try {
      return { secret: await store.getSecret({ namespace, name }) };
    } catch (error) {
      if (error instanceof RightsPending) refused?.(namespace);
      if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
      return refuse(secretNotFound, `Secret ${name} does not exist`);
    }
  }
}

function refuse(reason: string, message: string): { unresolved: Refusal } {
  return { unresolved: { reason, message } };
}
