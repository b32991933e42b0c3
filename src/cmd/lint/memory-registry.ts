import type { RecordByKind, RecordKind } from '../../core/records.ts';
import type { RegistryPublisher } from '../../data/registry/registry.ts';
import { indexEntries, type KindAndRecord } from '../../data/registry/registry-index.ts';
import { idIsOwned, nameIsTaken } from '../../data/registry/registry-publisher.ts';

type AnyRecord = RecordByKind[RecordKind];

/** A registry in memory with the refusals of the one in Redis. Nothing is delivered by it, and one process writes it. */
export class MemoryRegistry implements RegistryPublisher {
  readonly #records = new Map<string, AnyRecord>();
  /** Organization of each id. */
  readonly #owners = new Map<string, string>();
  /** Organization of each index entry that only one organization may have. */
  readonly #claims = new Map<string, string>();

  async mintEpoch(): Promise<number> {
    return 1;
  }

  async publish<K extends RecordKind>(_epoch: number, kind: K, record: RecordByKind[K]): Promise<boolean> {
    if ('org' in record) {
      const { org } = record;
      // The compiler cannot tie a generic kind to its record.
      const claims = indexEntries({ kind, record } as KindAndRecord).filter(({ isClaimed }) => isClaimed);
      const names = claims.map(({ index, field }) => `${index} ${field}`);
      if ((this.#owners.get(record.id) ?? org) !== org) throw idIsOwned(record.id, this.#owners.get(record.id) ?? '');
      if (names.some((name) => (this.#claims.get(name) ?? org) !== org)) throw nameIsTaken(kind, record.id);
      this.#owners.set(record.id, org);
      for (const name of names) this.#claims.set(name, org);
    }
    this.#records.set(keyOf(kind, record.id), record);
    return true;
  }

  async retract(_epoch: number, kind: RecordKind, id: string): Promise<boolean> {
    return this.#records.delete(keyOf(kind, id));
  }

  async claim(_epoch: number, id: string, org: string): Promise<void> {
    const owner = this.#owners.get(id) ?? org;
    if (owner !== org) throw idIsOwned(id, owner);
    this.#owners.set(id, org);
  }

  async eachOwner(found: (id: string, org: string) => void): Promise<void> {
    for (const [id, org] of this.#owners) found(id, org);
  }

  async ids(kind: RecordKind): Promise<string[]> {
    const prefix = keyOf(kind, '');
    return [...this.#records.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
  }

  async get<K extends RecordKind>(kind: K, id: string): Promise<RecordByKind[K] | null> {
    // `publish` ties the kind to its record.
    return (this.#records.get(keyOf(kind, id)) as RecordByKind[K] | undefined) ?? null;
  }

  async marker(): Promise<string> {
    return 'memory';
  }

  async markComplete(): Promise<void> {}
}

function keyOf(kind: RecordKind, id: string): string {
  return `${kind} ${id}`;
}
