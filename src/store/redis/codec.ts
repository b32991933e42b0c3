import { parseJson } from '../../core/read-json.ts';
import { isSealed, type Keyring, type SealingContext } from '../../core/sealing.ts';
import type { Kind, ObjectOf, SecretObject } from '../../resources/kinds.ts';
import { listed } from '../objects/member.ts';

/** Objects as text in Redis: JSON without the version, the values of Secrets sealed. */
export class ObjectCodec {
  readonly #keyring: Keyring;

  constructor(keyring: Keyring) {
    this.#keyring = keyring;
  }

  /** For the hash of its kind. */
  encode(object: ObjectOf<Kind>): string {
    return withoutVersion(
      object.kind === 'Secret' ? this.#mapData(object, (value, context) => this.#keyring.seal(value, context)) : object,
    );
  }

  /** The stored text with the values of a Secret under the newest key; null when they are. */
  reseal(stored: string): string | null {
    const end = stored.indexOf('\n');
    const secret = this.decodeListed('Secret', stored.slice(end + 1), stored.slice(0, end));
    const map = (value: string, context: SealingContext): string =>
      isSealed(value) ? this.#keyring.reseal(value, context) : this.#keyring.seal(value, context);
    const resealed = stored.slice(0, end + 1) + withoutVersion(this.#mapData(secret, map));
    return resealed === stored ? null : resealed;
  }

  /** For the log of changes. */
  encodeListed(object: ObjectOf<Kind>): string {
    return withoutVersion(listed(object));
  }

  /** `stored`: `<version>\n<json>`. A value of a Secret that does not open stays sealed, so that the Secret can be replaced and deleted. */
  decode<K extends Kind>(kind: K, stored: string): ObjectOf<K> {
    const end = stored.indexOf('\n');
    const object = this.decodeListed(kind, stored.slice(end + 1), stored.slice(0, end));
    if (object.kind !== 'Secret') return object;
    return this.#mapData(object, (value, context) => this.#opened(value, context)) as ObjectOf<K>;
  }

  #opened(value: string, context: SealingContext): string {
    if (!isSealed(value)) return value;
    try {
      return this.#keyring.open(value, context);
    } catch {
      return value;
    }
  }

  /** An object of the log, or of a list. It was validated when it was written. */
  decodeListed<K extends Kind>(_kind: K, json: string, version: string): ObjectOf<K> {
    const object = parseJson(json) as ObjectOf<K>;
    object.metadata.resourceVersion = version;
    return object;
  }

  #mapData(secret: SecretObject, map: (value: string, context: SealingContext) => string): SecretObject {
    const { namespace = '', name } = secret.metadata;
    if (secret.data === undefined) return secret;
    const data = Object.entries(secret.data).map(([field, value]) => [
      field,
      map(value, { organization: namespace, kind: 'Secret', name, field }),
    ]);
    return { ...secret, data: Object.fromEntries(data) };
  }
}

function withoutVersion(object: ObjectOf<Kind>): string {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return JSON.stringify({ ...object, metadata });
}
