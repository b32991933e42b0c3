import { resourceId } from '../core/ids.ts';
import { type EventTypeRecord, recordLayoutVersion } from '../core/records.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { webhookEventType as definition } from '../resources/webhook-event-type.ts';
import type { OrganizationFacts } from './organization.ts';

export interface WebhookEventTypeInputs {
  organization: OrganizationFacts;
  /** JSON text of the schema, which compiles, the same for equal schemas; null: none. */
  schema: string | null;
  /** The record in force now. */
  published: EventTypeRecord | null;
  nowMs: number;
}

/** An event type with the number of its schema, one more whenever that is another, and since when it is deprecated. */
export function compileWebhookEventType(object: PosthornObject<'WebhookEventType'>, inputs: WebhookEventTypeInputs): EventTypeRecord {
  const { metadata, spec } = object;
  return {
    v: recordLayoutVersion,
    id: resourceId(definition.idPrefix, metadata),
    org: inputs.organization.id,
    name: spec.name,
    enabled: spec.enabled,
    schema: inputs.schema,
    schemaVersion: versionOf(object, inputs),
    ...(spec.expiresAfterSeconds !== undefined && { expiresAfterSeconds: spec.expiresAfterSeconds }),
    deprecatedAtMs: spec.deprecated ? deprecatedAtMs(object, inputs) : null,
    generation: metadata.generation,
  };
}

function versionOf({ metadata, status }: PosthornObject<'WebhookEventType'>, { schema, published }: WebhookEventTypeInputs): number {
  if (published !== null && published.schema === schema) return published.schemaVersion;
  const known = Math.max(published?.schemaVersion ?? 0, status?.schemaVersion ?? 0);
  // An emptied Redis: the status is of this very schema.
  const isKnown = published === null && known > 0 && status?.observedGeneration === metadata.generation;
  return isKnown ? known : known + 1;
}

function deprecatedAtMs({ status }: PosthornObject<'WebhookEventType'>, { published, nowMs }: WebhookEventTypeInputs): number {
  if (published !== null && published.deprecatedAtMs !== null) return published.deprecatedAtMs;
  return status?.deprecatedAt === undefined ? nowMs : Date.parse(status.deprecatedAt);
}
