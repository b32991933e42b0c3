import { compileCredentials, type ReadCredential } from '../compile/credentials.ts';
import type { Keyring } from '../core/sealing.ts';
import type { FencedPublisher } from './fenced-publisher.ts';

/** Publishes what the Secrets of an object hold, for the API, which reads no Secrets. */
export class CredentialsSink {
  readonly #publisher: FencedPublisher;
  readonly #keyring: Keyring;

  constructor(publisher: FencedPublisher, keyring: Keyring) {
    this.#publisher = publisher;
    this.#keyring = keyring;
  }

  /** `read`: null where the object refers to no Secret. */
  async publish(object: { id: string; org: string; generation: number }, read: readonly ReadCredential[] | null): Promise<void> {
    const published = await this.#publisher.get('credentials', object.id);
    if (read !== null) {
      await this.#publisher.publish('credentials', compileCredentials(read, { ...object, keyring: this.#keyring, published }));
    } else if (published !== null) await this.#publisher.retract('credentials', object.id, object.org);
  }

  async retract(id: string): Promise<void> {
    await this.#publisher.retract('credentials', id);
  }
}
