import { bitbucket } from './bitbucket.ts';
import { custom } from './custom.ts';
import type { ProviderDescriptor } from './descriptor.ts';
import { generic } from './generic.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import { intercom } from './intercom.ts';
import { paddle } from './paddle.ts';
import { posthorn } from './posthorn.ts';
import { sentry } from './sentry.ts';
import { shopify } from './shopify.ts';
import { slack } from './slack.ts';
import { standardWebhooks } from './standard-webhooks.ts';
import { stripe } from './stripe.ts';
import { svix } from './svix.ts';
import { twilio } from './twilio.ts';

/** Supported providers. A new provider is a file beside this one and a line here; the CRD, the API, docs/providers.md and ingest follow from it. */
export const providers = {
  generic,
  custom,
  github,
  gitlab,
  stripe,
  shopify,
  slack,
  twilio,
  paddle,
  'standard-webhooks': standardWebhooks,
  svix,
  intercom,
  sentry,
  bitbucket,
  posthorn,
} as const satisfies Record<string, ProviderDescriptor>;

export type Provider = keyof typeof providers;

/** Provider of sources that receive Posthorn's own events. */
export const ownProvider = 'posthorn' satisfies Provider;

/** In the order of the table above. */
export const providerNames = Object.keys(providers) as [Provider, ...Provider[]];

/** Providers whose deliveries have no id of their own: a source must name a header with one to detect duplicates. */
export const providersWithoutDeliveryId: readonly string[] = providerNames.filter((name) => providers[name].deliveryIds.length === 0);

/**
 * Questions that a source answers by choice, whatever its provider. `hub_challenge`: Meta, WebSub; `validation_token`: Microsoft Graph; `challenge`: Dropbox;
 * `crc_token`: X; `cloudevents`: OPTIONS of CloudEvents.
 */
export const handshakes = ['hub_challenge', 'validation_token', 'challenge', 'crc_token', 'cloudevents'] as const;

export type Handshake = (typeof handshakes)[number];

/** Returns whether the provider's secrets are those of Standard Webhooks, `whsec_` and base64. */
export function hasStandardSecrets(provider: Provider): boolean {
  return providers[provider].secret.style === 'standard-webhooks';
}
