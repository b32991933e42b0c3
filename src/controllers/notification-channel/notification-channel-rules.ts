import { type ChannelSecret, compileNotificationChannel } from '../../compile/notification-channel.ts';
import { channelSecretReferences } from '../../compile/notification-channel-secrets.ts';
import type { OutgoingAddress } from '../../compile/outgoing-address.ts';
import { pagerdutyUrl } from '../../core/alert.ts';
import { plainSecret } from '../../core/plain-secret.ts';
import type { ChannelRecord } from '../../core/records.ts';
import type { Keyring } from '../../core/sealing.ts';
import { credentialOrigin } from '../../resources/secret-use.ts';
import type { ResourceRules } from '../resource-reconciler.ts';

/** Reads the credentials of a channel and compiles its record. */
export function notificationChannelRules(keyring: Keyring, mailDomains: readonly string[]): ResourceRules<'NotificationChannel'> {
  return {
    kind: 'NotificationChannel',
    originOf: ({ channel }) => credentialOrigin('NotificationChannel', { ...channel, [channel.type]: channel }),
    evaluate: async (object, organization, published, secrets) => {
      const values: ChannelSecret[] = [];
      for (const { reference, ...secret } of channelSecretReferences(object.spec)) {
        const { value, unresolved } = await secrets.read(reference, secret.field);
        if (unresolved !== undefined) return { unresolved };
        values.push({ ...secret, value });
      }
      const compiled = compileNotificationChannel(object, {
        organization,
        secrets: values,
        keyring,
        mailDomains,
        published: values.length > 0 ? await published() : null,
      });
      return { ...compiled, outgoing: compiled.record && outgoingOf(compiled.record.channel, values) };
    },
  };
}

/** E-mail goes to the server of the installation, which is not checked. */
function outgoingOf(channel: ChannelRecord, values: readonly ChannelSecret[]): OutgoingAddress | undefined {
  switch (channel.type) {
    case 'webhook':
      return { at: 'spec.webhook.url', to: channel.url };
    case 'pagerduty':
      return { at: 'spec.type', to: pagerdutyUrl };
    case 'slack':
    case 'teams':
    case 'discord': {
      const url = plainSecret(values.find(({ field }) => field === 'webhookUrl')?.value ?? '');
      return { at: `the value behind spec.${channel.type}.webhookUrlSecretRef`, to: url };
    }
    case 'email':
      return undefined;
    default:
      return channel satisfies never;
  }
}
