import { payloadFormRefusal } from '../../compile/payload-form-refusal.ts';
import { compileWebhookEndpoint, type ManagedEndpoint, webhookEndpointRefusal } from '../../compile/webhook-endpoint.ts';
import type { Keyring } from '../../core/sealing.ts';
import type { WebhookEndpoint } from '../../data/webhooks/webhooks.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { readHeaders } from '../header-values.ts';
import { idOf, referenced } from '../held-ids.ts';
import type { RecordRules } from '../resource-reconciler.ts';

interface WebhookEndpointRulesOptions {
  caches: Pick<ControllerCaches, 'Organization' | 'owners' | 'WebhookApplication'>;
  keyring: Keyring;
  /** Endpoints may be reached by http. */
  allowsInsecureUrls: boolean;
  /** Links of thin deliveries have an address. */
  hasPublicUrl: boolean;
  /** The endpoint with this id is in force no more, and what is below it has gone with it. */
  ended(id: string): void;
}

/** An endpoint ends with its application, as one that the API made does. */
export function webhookEndpointRules({
  caches,
  keyring,
  allowsInsecureUrls,
  hasPublicUrl,
  ended,
}: WebhookEndpointRulesOptions): RecordRules<'WebhookEndpoint', ManagedEndpoint, WebhookEndpoint> {
  return {
    kind: 'WebhookEndpoint',
    retracted: ended,
    evaluate: async (object, organization, published, secrets) => {
      const { spec } = object;
      const { namespace } = organization;
      const { name } = spec.applicationRef;
      const application = referenced(caches, caches.WebhookApplication, { namespace, name });
      if (application === undefined)
        return { isWithdrawn: true, unresolved: { reason: 'ApplicationNotFound', message: `WebhookApplication ${name} does not exist` } };
      const refusal =
        webhookEndpointRefusal(spec, allowsInsecureUrls) ?? payloadFormRefusal(spec.payloadForm, 'spec.payloadForm', hasPublicUrl);
      if (refusal !== null) return { refusal };
      const { value: secret, unresolved } = await secrets.read(spec.signingSecretRef, 'signingSecrets');
      if (unresolved !== undefined) return { unresolved };
      const read = await readHeaders(spec.headers, secrets);
      if (read.unresolved !== undefined) return { unresolved: read.unresolved };
      const { headers } = read;
      const applicationId = idOf('WebhookApplication', application);
      const compiled = compileWebhookEndpoint(object, {
        organization,
        applicationId,
        secret,
        headers,
        keyring,
        published: await published(),
      });
      return { ...compiled, outgoing: compiled.record && { at: 'spec.url', to: spec.url } };
    },
  };
}
