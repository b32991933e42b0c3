import type { MessageArchive } from '../../data/history/message-archive.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';

/** Brings into the shards which organizations have an archive. */
export class ArchiveSettings {
  readonly #registry: RegistryReader;
  readonly #archives: readonly MessageArchive[];

  constructor({ registry, archives }: { registry: RegistryReader; archives: readonly MessageArchive[] }) {
    this.#registry = registry;
    this.#archives = archives;
  }

  /** Returns whether there is any. Throws UNAVAILABLE when Redis does not answer, or is being published into. */
  async apply(): Promise<boolean> {
    const wanted = new Map<string, string | null>();
    const unknown = new Set<string>();
    for (const org of await this.#registry.archivingOrganizations()) {
      const record = await this.#registry.get('organization', org);
      if (record?.archive === undefined) unknown.add(org);
      else wanted.set(org, record.archive.destinationId);
    }
    await Promise.all(this.#archives.map((archive) => this.#applyTo(archive, wanted, unknown)));
    return wanted.size > 0;
  }

  async #applyTo(archive: MessageArchive, wanted: ReadonlyMap<string, string | null>, unknown: ReadonlySet<string>): Promise<void> {
    const known = await archive.settings();
    for (const [org, destinationId] of wanted) if (known.get(org) !== destinationId) await archive.set(org, destinationId);
    for (const org of known.keys()) if (!wanted.has(org) && !unknown.has(org)) await archive.end(org);
  }
}
