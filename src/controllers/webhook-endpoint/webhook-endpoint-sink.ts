import type { ManagedEndpoint } from '../../compile/webhook-endpoint.ts';
import type { WebhookEndpoint } from '../../data/webhooks/webhooks.ts';
import type { RecordSink } from '../record-sink.ts';
import { type WebhookSinkOptions, webhookRecordSink } from '../webhook-record-sink.ts';

/** `created`: one that was not there before, and has no subscriptions yet. */
export function webhookEndpointSink(
  options: WebhookSinkOptions & { created(endpoint: ManagedEndpoint): void },
): RecordSink<ManagedEndpoint, WebhookEndpoint> {
  const { webhooks, created } = options;
  const create = ({ secret, signingKey, disabling, ...record }: ManagedEndpoint): Promise<unknown> =>
    webhooks.createEndpoint({ ...record, ...disabling, sealSecret: () => secret, sealSigningKey: () => signingKey });
  return webhookRecordSink(
    {
      get: (org, id) => webhooks.endpoint(org, id),
      create,
      update: async (stored, record) => {
        const { id, org, applicationId, disabling, ...change } = record;
        if (stored.applicationId === applicationId) return await webhooks.updateEndpoint(org, id, { ...change, ...disabling });
        // Its application was recreated.
        await webhooks.deleteEndpoint(org, id);
        try {
          return await create(record);
        } finally {
          // Its subscriptions went with it, and it may be there although the answer is lost.
          created(record);
        }
      },
      delete: (org, id) => webhooks.deleteEndpoint(org, id),
      disable: async ({ org, id, isDisabled }, disabledReason) => {
        if (!isDisabled) await webhooks.updateEndpoint(org, id, { isDisabled: true, disabledReason });
      },
      created,
      obstacleTo: async (_, error) =>
        error.code === 'RESOURCE_NOT_FOUND'
          ? { unresolved: { reason: 'ApplicationNotProgrammed', message: 'the application of spec.applicationRef is not programmed' } }
          : null,
    },
    options,
  );
}
