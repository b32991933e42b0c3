import { resourceId } from '../core/ids.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { webhookApplication as definition } from '../resources/webhook-application.ts';
import { type Compiled, refuse } from './compiled.ts';
import { managedBy } from './managed-by.ts';
import type { OrganizationFacts } from './organization.ts';

/** An application as the webhook store keeps it. */
export interface ManagedApplication {
  id: string;
  org: string;
  name: string;
  externalId: string | null;
  metadata: Record<string, unknown>;
  rateLimits: { perSecond: number; perMinute: number; perHour: number };
  isDisabled: boolean;
  disabledReason: string | null;
  disableAfterHours: number | null;
  managedBy: string;
}

const maxMetadataBytes = 8192;

/** Refuses metadata that is too large. */
export function compileWebhookApplication(
  { metadata, spec }: PosthornObject<'WebhookApplication'>,
  organization: OrganizationFacts,
): Compiled<ManagedApplication> {
  if (Buffer.byteLength(JSON.stringify(spec.metadata ?? {})) > maxMetadataBytes)
    return refuse('MetadataTooLarge', `spec.metadata exceeds ${maxMetadataBytes} bytes as JSON`);
  const rateLimits = spec.rateLimits ?? definition.spec.shape.rateLimits.unwrap().parse({});
  return {
    record: {
      id: resourceId(definition.idPrefix, metadata),
      org: organization.id,
      name: spec.name ?? metadata.name,
      externalId: spec.externalId ?? null,
      metadata: { ...spec.metadata },
      rateLimits: { ...rateLimits },
      isDisabled: !spec.enabled,
      disabledReason: spec.enabled ? null : (spec.disabledReason ?? null),
      disableAfterHours: spec.disableAfterHours ?? null,
      managedBy: managedBy(metadata),
    },
  };
}
