import type { RecordKind } from '../../core/records.ts';
import type { MessagePurger } from '../../data/shard/messages.ts';
import { retractionOrder } from '../../resources/references.ts';
import { type ControllerCaches, indexes } from '../controller-caches.ts';
import type { FencedPublisher } from '../fenced-publisher.ts';
import { idOf, isLive } from '../held-ids.ts';
import { isRetained, isWithdrawn } from '../retained-organizations.ts';

/** As long as a message waits for what is disabled, and then as a dead letter. */
export const retainedMs = 37 * 86_400_000;

/** What Redis holds of one organization: records and messages. */
export class OrganizationRecords {
  readonly #caches: ControllerCaches;
  readonly #publisher: FencedPublisher;
  readonly #purger: MessagePurger;

  constructor(options: { caches: ControllerCaches; publisher: FencedPublisher; purger: MessagePurger }) {
    this.#caches = options.caches;
    this.#publisher = options.publisher;
    this.#purger = options.purger;
  }

  /**
   * Retracts the organization's record and those of what is still in the namespace (null: leave them), then purges its messages.
   * Returns whether there were records: then messages may have been under way, and a second call a little later finds them.
   */
  async remove(id: string, namespace: string | null, signal: AbortSignal): Promise<boolean> {
    // It can no longer be adopted.
    this.#caches.retained.forget(id);
    let had = await this.#publisher.retract('organization', id);
    for (const [kind, recordId] of namespace === null ? [] : this.#recordsIn(namespace)) {
      // An id can be claimed by annotation: the record may be another organization's.
      if (await this.#publisher.retract(kind, recordId, id)) had = true;
    }
    await this.#purger.purgeOrganization(id, signal);
    return had;
  }

  /** Marks the records of the organization as retained: nothing is accepted for it any more, and queued messages wait. */
  async retain(id: string, nowMs: number): Promise<void> {
    const record = await this.#publisher.get('organization', id);
    if (record === null || isRetained(record)) return;
    const namespace = this.#caches.Namespace.get({ name: record.namespace });
    const retained = { ...record, retained: { atMs: nowMs, namespaceUid: isLive(namespace) ? (namespace?.metadata.uid ?? null) : null } };
    this.#caches.retained.note(retained);
    for (const [kind, recordId] of this.#recordsIn(record.namespace))
      if (isWithdrawn(kind)) await this.#publisher.retract(kind, recordId, id);
    await this.#publisher.publish('organization', retained);
  }

  /** Loads the retained organizations, and retains those whose object went unprocessed: while there was no leader, for example. */
  async retainGone(nowMs: number): Promise<void> {
    const { Organization, retained } = this.#caches;
    for (const id of await this.#publisher.ids('organization')) {
      const record = await this.#publisher.get('organization', id);
      if (record === null) continue;
      retained.note(record);
      const isGone = Organization.byIndex(indexes.id, id).length === 0;
      if (isGone && record.deletionPolicy !== 'Delete') await this.retain(id, nowMs);
    }
  }

  /** Whether nothing is to be kept of an organization whose object is gone, or no longer. One that has yet to be retained is not over. */
  async isOver(id: string, nowMs: number): Promise<boolean> {
    const record = await this.#publisher.get('organization', id);
    if (record === null) return true;
    return isRetained(record) ? nowMs >= record.retained.atMs + retainedMs : record.deletionPolicy === 'Delete';
  }

  #recordsIn(namespace: string): [RecordKind, string][] {
    return retractionOrder.flatMap(({ kind, recordKind }) =>
      this.#caches[kind].byIndex(indexes.namespace, namespace).map((object): [RecordKind, string] => [recordKind, idOf(kind, object)]),
    );
  }
}
