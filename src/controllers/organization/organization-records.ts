import type { RecordKind } from '../../core/records.ts';
import type { MessagePurger } from '../../data/shard/messages.ts';
import { retractionOrder } from '../../resources/references.ts';
import { type ControllerCaches, indexes } from '../controller-caches.ts';
import type { FencedPublisher } from '../fenced-publisher.ts';
import { idOf } from '../references.ts';

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
    let had = await this.#publisher.retract('organization', id);
    for (const [kind, recordId] of namespace === null ? [] : this.#recordsIn(namespace)) {
      // An id can be claimed by annotation: the record may be another organization's.
      if (await this.#publisher.retract(kind, recordId, id)) had = true;
    }
    await this.#purger.purgeOrganization(id, signal);
    return had;
  }

  #recordsIn(namespace: string): [RecordKind, string][] {
    return retractionOrder.flatMap(({ kind, recordKind }) =>
      this.#caches[kind].byIndex(indexes.namespace, namespace).map((object): [RecordKind, string] => [recordKind, idOf(kind, object)]),
    );
  }
}
