import type { Refusal } from '../../compile/compiled.ts';
import type { ManagedApplication } from '../../compile/webhook-application.ts';
import { shardOf } from '../../core/shard-of.ts';
import type { WebhookApplication } from '../../data/webhooks/webhooks.ts';
import type { RecordSink } from '../record-sink.ts';
import { type WebhookSinkOptions, webhookRecordSink } from '../webhook-record-sink.ts';

/** The refusal of an application with the external id of another one. */
export function externalIdTaken({ id, managedBy }: Pick<WebhookApplication, 'id' | 'managedBy'>, externalId: string | null): Refusal {
  const whose = managedBy === null ? `${id}, created through the API,` : `of the WebhookApplication ${managedBy}`;
  return { reason: 'ExternalIdTaken', message: `the application ${whose} already has the external id ${externalId}` };
}

/** `shards`: over how many new applications are spread. `created`: one that was not there before. */
export function webhookApplicationSink(
  options: WebhookSinkOptions & { shards: number; created(application: ManagedApplication): void },
): RecordSink<ManagedApplication, WebhookApplication> {
  const { webhooks, shards, created } = options;
  return webhookRecordSink(
    {
      get: (org, id) => webhooks.application(org, id),
      create: (record) => webhooks.createApplication({ ...record, shard: shardOf(record.id, shards) }),
      update: (_, { id, org, ...change }) => webhooks.updateApplication(org, id, change),
      delete: (org, id) => webhooks.deleteApplication(org, id),
      disable: async ({ org, id, isDisabled }, disabledReason) => {
        if (!isDisabled) await webhooks.updateApplication(org, id, { isDisabled: true, disabledReason });
      },
      created,
      obstacleTo: async ({ org, id, externalId }) => {
        const other = externalId === null ? null : await webhooks.applicationByExternalId(org, externalId);
        if (other === null || other.id === id) return null;
        return { refusal: externalIdTaken(other, externalId) };
      },
    },
    options,
  );
}
