import type { CredentialField } from '../core/sealing-contexts.ts';
import type { SpecOf } from '../resources/kinds.ts';
import type { SecretReference } from '../resources/secret-use.ts';

/** A value that the channel needs: `field` is that of the record, `header` the name of the header it belongs to. */
export interface ChannelSecretReference {
  field: CredentialField & ('webhookUrl' | 'routingKey' | 'signingSecrets' | 'headerValue');
  header?: string;
  reference: SecretReference;
}

/** The references to Secrets of the block that belongs to the channel's type. */
export function channelSecretReferences(spec: SpecOf<'NotificationChannel'>): ChannelSecretReference[] {
  switch (spec.type) {
    case 'slack':
    case 'teams':
    case 'discord': {
      const block = spec[spec.type];
      return block === undefined ? [] : [{ field: 'webhookUrl', reference: block.webhookUrlSecretRef }];
    }
    case 'pagerduty':
      return spec.pagerduty === undefined ? [] : [{ field: 'routingKey', reference: spec.pagerduty.routingKeySecretRef }];
    case 'webhook': {
      const { headers = [], signingSecretRef } = spec.webhook ?? {};
      return [
        ...headers.map(({ name, valueSecretRef }) => ({ field: 'headerValue' as const, header: name, reference: valueSecretRef })),
        ...(signingSecretRef === undefined ? [] : [{ field: 'signingSecrets' as const, reference: signingSecretRef }]),
      ];
    }
    case 'email':
      return [];
  }
}
