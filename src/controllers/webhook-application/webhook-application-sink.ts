import { shardOf } from '../../compile/shard.ts';
import type { ManagedApplication } from '../../compile/webhook-application.ts';
import type { WebhookApplication } from '../../data/webhooks/webhooks.ts';
import type { RecordSink } from '../record-sink.ts';
import { type WebhookSinkOptions, webhookRecordSink } from '../webhook-record-sink.ts';

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
        const whose = other.managedBy === null ? `${other.id}, created through the API,` : `of the WebhookApplication ${other.managedBy}`;
        return { refusal: { reason: 'ExternalIdTaken', message: `the application ${whose} already has the external id ${externalId}` } };
      },
    },
    options,
  );
}
