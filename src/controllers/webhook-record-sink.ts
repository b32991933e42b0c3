import type { Refusal } from '../compile/compiled.ts';
import { type OrganizationFacts, organizationFacts } from '../compile/organization.ts';
import { isPosthornError, type PosthornError } from '../core/errors.ts';
import type { RedisWebhookStore } from '../data/webhooks/redis-webhook-store.ts';
import type { ResourceCache } from '../store/cache.ts';
import type { FencedPublisher } from './fenced-publisher.ts';
import { organizationOf } from './held-ids.ts';
import { claimId, type RecordConflict, type RecordSink } from './record-sink.ts';

export interface WebhookSinkOptions {
  /** Under the epoch of this leader. */
  webhooks: RedisWebhookStore;
  publisher: Pick<FencedPublisher, 'write' | 'claim'>;
  organizations: ResourceCache<'Organization'>;
}

/** How the records of one kind are kept in the webhook store. */
export interface WebhookRecords<Record, Stored> {
  get(org: string, id: string): Promise<Stored | null>;
  create(record: Record): Promise<unknown>;
  update(stored: Stored, record: Record): Promise<unknown>;
  delete(org: string, id: string): Promise<void>;
  disable(stored: Stored, reason: string | null): Promise<unknown>;
  /** The conflict in other objects that makes the store refuse the record; null: none known. */
  obstacleTo(record: Record, error: PosthornError): Promise<RecordConflict | null>;
  /** It was not there before; also called when it is unknown whether it is there now. */
  created?(record: Record): void;
}

const taken: Refusal = { reason: 'IdTaken', message: 'an object created through the API has the id of this resource' };

/** The webhook store, for custom resources. Objects made through the API are never touched. */
export function webhookRecordSink<Record extends { org: string; id: string }, Stored extends { managedBy: string | null }>(
  records: WebhookRecords<Record, Stored>,
  { publisher, organizations }: WebhookSinkOptions,
): RecordSink<Record, Stored> {
  const managed = async (org: string, id: string): Promise<Stored | null> => {
    const stored = await publisher.write(() => records.get(org, id));
    return stored === null || stored.managedBy === null ? null : stored;
  };
  return {
    get: (id: string, organization: OrganizationFacts) => managed(organization.id, id),
    publish: async (record) => {
      // Shards keep data of an application or an endpoint, such as its limits, by its id alone.
      const owned = await claimId(publisher, record);
      if (owned !== null) return owned;
      const stored = await publisher.write(() => records.get(record.org, record.id));
      if (stored !== null && stored.managedBy === null) return { refusal: taken };
      try {
        await publisher.write(async () => (stored === null ? records.create(record) : records.update(stored, record)));
      } catch (error) {
        const obstacle = isRefusal(error) ? await publisher.write(() => records.obstacleTo(record, error)) : null;
        if (obstacle !== null) return obstacle;
        // It may be there all the same, and is no news the next time.
        if (stored === null) records.created?.(record);
        throw error;
      }
      if (stored === null) records.created?.(record);
      return null;
    },
    retract: async (id, namespace) => {
      // Without its organization everything is gone with that.
      const organization = organizationOf(organizations, namespace);
      if (organization === undefined) return;
      const { id: org } = organizationFacts(organization);
      if ((await managed(org, id)) === null) return;
      await publisher.write(() => records.delete(org, id)).catch(ignoreMissing);
    },
    disable: async (stored, reason) => {
      await publisher.write(() => records.disable(stored, reason)).catch(ignoreMissing);
    },
    generationOf: () => null,
  };
}

function isRefusal(error: unknown): error is PosthornError {
  return isPosthornError(error, 'CONFLICT', 'RESOURCE_NOT_FOUND') && error.details?.['epoch'] === undefined;
}

function ignoreMissing(error: unknown): void {
  if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
}
