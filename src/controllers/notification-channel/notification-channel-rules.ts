import { type ChannelSecret, compileNotificationChannel } from '../../compile/notification-channel.ts';
import { channelSecretReferences } from '../../compile/notification-channel-secrets.ts';
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
      return compileNotificationChannel(object, {
        organization,
        secrets: values,
        keyring,
        mailDomains,
        published: values.length > 0 ? await published() : null,
      });
    },
  };
}
