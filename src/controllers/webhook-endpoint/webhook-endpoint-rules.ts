import { compileWebhookEndpoint, type ManagedEndpoint, webhookEndpointRefusal } from '../../compile/webhook-endpoint.ts';
import type { Keyring } from '../../core/sealing.ts';
import type { WebhookEndpoint } from '../../data/webhooks/webhooks.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { idOf, referenced } from '../references.ts';
import type { RecordRules } from '../resource-reconciler.ts';
import type { SecretReader } from '../secret-reader.ts';

interface WebhookEndpointRulesOptions {
  caches: Pick<ControllerCaches, 'WebhookApplication'>;
  secrets: SecretReader;
  keyring: Keyring;
  /** Endpoints may be reached by http. */
  allowsInsecureUrls: boolean;
  /** The endpoint with this id is in force no more, and what is below it has gone with it. */
  ended(id: string): void;
}

/** An endpoint ends with its application, as one that the API made does. */
export function webhookEndpointRules({
  caches,
  secrets,
  keyring,
  allowsInsecureUrls,
  ended,
}: WebhookEndpointRulesOptions): RecordRules<'WebhookEndpoint', ManagedEndpoint, WebhookEndpoint> {
  return {
    kind: 'WebhookEndpoint',
    retracted: ended,
    evaluate: async (object, organization, published) => {
      const { spec } = object;
      const { namespace } = organization;
      const { name } = spec.applicationRef;
      const application = referenced(caches.WebhookApplication, { namespace, name });
      if (application === undefined)
        return { isWithdrawn: true, unresolved: { reason: 'ApplicationNotFound', message: `WebhookApplication ${name} does not exist` } };
      const refusal = webhookEndpointRefusal(spec, allowsInsecureUrls);
      if (refusal !== null) return { refusal };
      const { value: secret, unresolved } = await secrets.read(organization.id, namespace, spec.signingSecretRef);
      if (unresolved !== undefined) return { unresolved };
      const applicationId = idOf('WebhookApplication', application);
      return compileWebhookEndpoint(object, { organization, applicationId, secret, keyring, published: await published() });
    },
  };
}
