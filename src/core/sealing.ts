import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { PosthornError } from './errors.ts';

/** Context of a sealed value; bound to it as associated data, so that an envelope moved elsewhere does not open. */
export interface SealingContext {
  organization: string;
  kind: string;
  name: string;
  field: string;
  /** Other users of it, such as an object and an origin; absent: none. */
  madeFor?: string | undefined;
}

/** `id`: `[A-Za-z0-9_-]+`; `key`: 32 bytes. */
export interface EncryptionKey {
  id: string;
  key: Uint8Array;
}

const envelopePrefix = 'sealed.v1.';

/**
 * AES-256-GCM envelopes `sealed.v1.<key id>.<nonce>.<tag>.<ciphertext>` (base64url parts). The first key seals, all
 * open.
 */
export class Keyring {
  readonly #changedKeys: () => readonly EncryptionKey[] | null;
  #keys: ReadonlyMap<string, KeyObject> = new Map();
  #sealingKeyId = '';

  /**
   * `keys`: at least one, newest first. `changedKeys`: the keys that replace them; null: there is no change. It is called by `refresh`, and
   * when a value was sealed with a key that is not in the keyring.
   */
  constructor(keys: readonly EncryptionKey[], changedKeys: () => readonly EncryptionKey[] | null = () => null) {
    this.#replace(keys);
    this.#changedKeys = changedKeys;
  }

  refresh(): void {
    const keys = this.#changedKeys();
    if (keys !== null) this.#replace(keys);
  }

  #replace(keys: readonly EncryptionKey[]): void {
    const first = keys[0];
    if (first === undefined) throw new PosthornError('INTERNAL', 'the keyring is empty');
    this.#keys = new Map(keys.map(({ id, key }) => [id, createSecretKey(key)]));
    this.#sealingKeyId = first.id;
  }

  seal(plain: string, context: SealingContext): string {
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.#key(this.#sealingKeyId), nonce);
    cipher.setAAD(associatedData(context));
    const text = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
    const parts = [nonce, cipher.getAuthTag(), text].map((part) => part.toString('base64url'));
    return `${envelopePrefix}${this.#sealingKeyId}.${parts.join('.')}`;
  }

  /**
   * Throws `INTERNAL` when the envelope is broken, bound otherwise, or its key is not in the ring. One that was sealed without `madeFor`, by an earlier
   * release, opens with it; one that was sealed with it opens with no other.
   */
  open(envelope: string, context: SealingContext): string {
    if (context.madeFor === undefined) return this.#open(envelope, context);
    try {
      return this.#open(envelope, context);
    } catch {
      return this.#open(envelope, { ...context, madeFor: undefined });
    }
  }

  #open(envelope: string, context: SealingContext): string {
    const [keyId, nonce, tag, text] = envelope.slice(envelopePrefix.length).split('.');
    if (!isSealed(envelope) || keyId === undefined || nonce === undefined || tag === undefined || text === undefined) {
      throw new PosthornError('INTERNAL', 'a sealed value is malformed');
    }
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key(keyId), Buffer.from(nonce, 'base64url'), { authTagLength: 16 });
      decipher.setAAD(associatedData(context));
      decipher.setAuthTag(Buffer.from(tag, 'base64url'));
      return decipher.update(text, 'base64url', 'utf8') + decipher.final('utf8');
    } catch (cause) {
      throw new PosthornError('INTERNAL', `a value sealed with key ${keyId} does not open`, { cause });
    }
  }

  /** The envelope itself when the newest key has sealed it, else its value under that key. Throws as `open` does. */
  reseal(envelope: string, context: SealingContext): string {
    if (envelope.startsWith(`${envelopePrefix}${this.#sealingKeyId}.`)) return envelope;
    return this.seal(this.open(envelope, context), context);
  }

  #key(id: string): KeyObject {
    if (!this.#keys.has(id)) this.refresh();
    const key = this.#keys.get(id);
    if (key === undefined) throw new PosthornError('INTERNAL', `encryption key ${id} is not in the keyring`);
    return key;
  }
}

export function isSealed(value: string): boolean {
  return value.startsWith(envelopePrefix);
}

function associatedData({ organization, kind, name, field, madeFor }: SealingContext): Buffer {
  return Buffer.from(JSON.stringify([organization, kind, name, field, ...(madeFor === undefined ? [] : [madeFor])]));
}
