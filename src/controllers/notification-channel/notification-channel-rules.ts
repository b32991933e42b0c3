import { type ChannelSecret, compileNotificationChannel } from '../../compile/notification-channel.ts';
import { channelSecretReferences } from '../../compile/notification-channel-secrets.ts';
import type { Keyring } from '../../core/sealing.ts';
import type { ResourceRules } from '../resource-reconciler.ts';
import type { SecretReader } from '../secret-reader.ts';

/** A channel is in force once its credentials are read. */
export function notificationChannelRules(
  secrets: SecretReader,
  keyring: Keyring,
): ResourceRules<'NotificationChannel', 'notificationChannel'> {
  return {
    kind: 'NotificationChannel',
    recordKind: 'notificationChannel',
    evaluate: async (object, organization, published) => {
      const values: ChannelSecret[] = [];
      for (const { reference, ...secret } of channelSecretReferences(object.spec)) {
        const { value, unresolved } = await secrets.read(organization.id, organization.namespace, reference);
        if (unresolved !== undefined) return { unresolved };
        values.push({ ...secret, value });
      }
      return compileNotificationChannel(object, {
        organization,
        secrets: values,
        keyring,
        published: values.length > 0 ? await published() : null,
      });
    },
  };
}
