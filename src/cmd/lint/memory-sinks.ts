import type { Refusal } from '../../compile/compiled.ts';
import type { FencedPublisher } from '../../controllers/fenced-publisher.ts';
import type { WebhookSinks } from '../../controllers/reconcilers.ts';
import { claimId, type RecordSink, registrySink } from '../../controllers/record-sink.ts';
import { externalIdTaken } from '../../controllers/webhook-application/webhook-application-sink.ts';
import { duplicateSubscription } from '../../controllers/webhook-subscription/webhook-subscription-sink.ts';
import type { KnownWebhooks } from '../../data/webhooks/known-webhooks.ts';

interface WebhookRecord {
  id: string;
  org: string;
  managedBy: string;
}

/** Where webhook records go that are not delivered by: their ids and names are validated as in the webhook store. */
export function memoryWebhookSinks(publisher: FencedPublisher): WebhookSinks {
  return {
    eventType: registrySink(publisher, 'eventType'),
    application: memorySink(
      publisher,
      ({ org, externalId }) => (externalId === null ? null : `${org} ${externalId}`),
      ({ externalId }, other) => externalIdTaken(other, externalId),
    ),
    endpoint: memorySink(
      publisher,
      () => null,
      () => null,
    ),
    subscription: memorySink(
      publisher,
      ({ org, endpointId, eventTypeId }) => `${org} ${endpointId} ${eventTypeId}`,
      (_, other) => duplicateSubscription(other),
    ),
  };
}

/** `nameOf`: what only one record may have; null: nothing. `refusal`: of a record whose name `other` has. */
function memorySink<Published extends WebhookRecord>(
  publisher: FencedPublisher,
  nameOf: (record: Published) => string | null,
  refusal: (record: Published, other: Published) => Refusal | null,
): RecordSink<Published, never> {
  const holders = new Map<string, Published>();
  return {
    get: async () => null,
    publish: async (record) => {
      const owned = await claimId(publisher, record);
      if (owned !== null) return owned;
      const name = nameOf(record);
      if (name === null) return null;
      const holder = holders.get(name);
      const found = holder === undefined || holder.id === record.id ? null : refusal(record, holder);
      if (found !== null) return { refusal: found };
      holders.set(name, record);
      return null;
    },
    retract: async () => {},
    disable: async () => {},
    generationOf: () => null,
  };
}

/** Objects of the API are in no manifest: everything that a replay names may exist. */
export const allKnown: KnownWebhooks = {
  applicationsById: async () => new Map(),
  endpointsById: async () => new Map(),
  deletedNames: async () => new Map(),
  deletedEventTypeIds: async () => null,
  mayHaveEvents: async () => true,
  hasHistory: async () => true,
  eventTypeIdByName: async () => null,
};
