import type { EventTypeRecord } from '../../core/records.ts';
import { indexes } from '../controller-caches.ts';
import type { FencedPublisher } from '../fenced-publisher.ts';
import { idOf, isLive, organizationOf } from '../held-ids.ts';
import { type RecordSink, registrySink } from '../record-sink.ts';
import type { WebhookSinkOptions } from '../webhook-record-sink.ts';

/** Event types go with their subscriptions, however they are deleted, and may be subscribed to when they come back. */
export function webhookEventTypeSink({
  publisher,
  webhooks,
  organizations,
}: WebhookSinkOptions & { publisher: FencedPublisher }): RecordSink<EventTypeRecord> {
  const registry = registrySink(publisher, 'eventType');
  const organizationIn = (namespace: string): string | undefined => {
    const organization = organizationOf(organizations, namespace);
    return organization && idOf('Organization', organization);
  };
  return {
    ...registry,
    publish: async (record) => {
      await publisher.write(() => webhooks.admitEventType(record.org, record.id));
      return await registry.publish(record);
    },
    retract: async (id, namespace) => {
      // One that was never accepted has no record, and may have subscriptions all the same.
      const record = await publisher.get('eventType', id);
      const org = record?.org ?? organizationIn(namespace);
      // A deleted organization's data is purged as a whole, and nothing may be written there after that.
      if (org !== undefined && organizations.byIndex(indexes.id, org).some(isLive))
        await publisher.write(() => webhooks.deleteEventType(org, id, record?.name));
      await registry.retract(id, namespace);
    },
  };
}
