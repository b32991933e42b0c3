import { isPosthornError, PosthornError } from '../core/errors.ts';
import type { RecordByKind, RecordKind } from '../core/records.ts';
import type { RegistryPublisher } from '../data/registry/registry.ts';
import { type IdOwners, ownerOfRefusedId } from './id-owners.ts';

/**
 * The registry, and what else a leader writes, under its epoch. Once a newer epoch refuses a write, this process no longer leads: `fenced` aborts with
 * the refusal as its reason, and nothing is written after that. See docs/decisions/0003-epoch-fence.md.
 */
export class FencedPublisher {
  readonly #registry: RegistryPublisher;
  readonly #epoch: number;
  readonly #owners: IdOwners;
  readonly #fenced = new AbortController();

  constructor(registry: RegistryPublisher, epoch: number, owners: IdOwners) {
    this.#registry = registry;
    this.#epoch = epoch;
    this.#owners = owners;
  }

  get fenced(): AbortSignal {
    return this.#fenced.signal;
  }

  async publish<K extends RecordKind>(kind: K, record: RecordByKind[K]): Promise<boolean> {
    const hasChanged = await this.#noting(record.id, () => this.#registry.publish(this.#epoch, kind, record));
    if ('org' in record) this.#owners.note(record.id, record.org);
    return hasChanged;
  }

  /** Makes an id that has no record in the registry an organization's for good; rejects as `publish` does when it is another's. */
  async claim(id: string, org: string): Promise<void> {
    await this.#noting(id, () => this.#registry.claim(this.#epoch, id, org));
    this.#owners.note(id, org);
  }

  /** Stores the owner of a refused id. */
  async #noting<T>(id: string, write: () => Promise<T>): Promise<T> {
    try {
      return await this.write(write);
    } catch (error) {
      const owner = ownerOfRefusedId(error);
      if (owner !== undefined) this.#owners.note(id, owner);
      throw error;
    }
  }

  async retract(kind: RecordKind, id: string, org?: string): Promise<boolean> {
    return this.write(() => this.#registry.retract(this.#epoch, kind, id, org));
  }

  async get<K extends RecordKind>(kind: K, id: string): Promise<RecordByKind[K] | null> {
    return this.#registry.get(kind, id);
  }

  async ids(kind: RecordKind): Promise<string[]> {
    return this.#registry.ids(kind);
  }

  async marker(): Promise<string> {
    return this.#registry.marker();
  }

  async markComplete(): Promise<void> {
    return this.write(() => this.#registry.markComplete());
  }

  /** Any write that CONFLICT with `details.epoch` refuses to a process that leads no more. */
  async write<T>(write: () => Promise<T>): Promise<T> {
    if (this.#fenced.signal.aborted) throw new PosthornError('CONFLICT', 'this process no longer leads');
    try {
      return await write();
    } catch (error) {
      if (isPosthornError(error, 'CONFLICT') && error.details?.['epoch'] !== undefined) this.#fenced.abort(error);
      throw error;
    }
  }
}
