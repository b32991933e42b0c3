import { resourceId } from '../core/ids.ts';
import { mailDomainProblem } from '../core/mail-domains.ts';
import { plainSecret } from '../core/plain-secret.ts';
import { type ChannelRecord, type NotificationChannelRecord, recordLayoutVersion } from '../core/records.ts';
import type { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { listedSecrets, standardWebhooksSecretRule, standardWebhooksSecrets, tooManySecrets } from '../core/standard-webhooks-secrets.ts';
import { urlProblem } from '../core/url-problem.ts';
import { headerValue } from '../resources/http-header.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { notificationChannel as definition } from '../resources/notification-channel.ts';
import { webhookUrlProblem } from '../resources/webhook-url.ts';
import { type Compiled, refuse } from './compiled.ts';
import type { ChannelSecretReference } from './notification-channel-secrets.ts';
import type { OrganizationFacts } from './organization.ts';
import { sealValue } from './sealed-value.ts';

export type ChannelSecret = Omit<ChannelSecretReference, 'reference'> & { value: string };

export interface NotificationChannelInputs {
  organization: OrganizationFacts;
  /** Values behind `channelSecretReferences`. */
  secrets: readonly ChannelSecret[];
  keyring: Keyring;
  /** Domains of addresses that may get e-mails; empty: any. */
  mailDomains: readonly string[];
  /** The published record. The compiler reuses an envelope of it that holds the same value. */
  published: NotificationChannelRecord | null;
}

/** Refuses webhook URLs of other services, e-mail addresses of domains that the installation does not send to, empty routing keys, and values that cannot be sent as headers or signed with. */
export function compileNotificationChannel(
  object: PosthornObject<'NotificationChannel'>,
  inputs: NotificationChannelInputs,
): Compiled<NotificationChannelRecord> {
  const { metadata, spec } = object;
  const channel = compileChannel(object, inputs);
  if (channel.refusal !== undefined) return channel;
  return {
    record: {
      v: recordLayoutVersion,
      id: resourceId(definition.idPrefix, metadata),
      org: inputs.organization.id,
      slug: metadata.name,
      name: spec.name ?? metadata.name,
      enabled: spec.enabled,
      channel: channel.record,
      generation: metadata.generation,
    },
  };
}

function compileChannel(
  { metadata, spec }: PosthornObject<'NotificationChannel'>,
  { organization, secrets, keyring, mailDomains, published }: NotificationChannelInputs,
): Compiled<ChannelRecord> {
  const id = resourceId(definition.idPrefix, metadata);
  const before = envelopesOf(published?.channel);
  const seal = (field: ChannelSecret['field'], plain: string): string =>
    sealValue(plain, recordSealingContext(organization.id, 'notificationChannel', id, field), before, keyring);
  const plainOf = (field: ChannelSecret['field']): string => plainSecret(secrets.find((secret) => secret.field === field)?.value ?? '');
  switch (spec.type) {
    case 'slack':
    case 'teams':
    case 'discord': {
      const url = plainOf('webhookUrl');
      const problem = webhookUrlProblem(spec.type, url);
      if (problem !== null) return refuse('InvalidWebhookUrl', `the value behind spec.${spec.type}.webhookUrlSecretRef ${problem}`);
      return { record: { type: spec.type, webhookUrl: seal('webhookUrl', url) } };
    }
    case 'pagerduty': {
      const key = plainOf('routingKey');
      if (spec.pagerduty === undefined || !/^[\x21-\x7e]{1,256}$/.test(key))
        return refuse('InvalidRoutingKey', 'the value behind spec.pagerduty.routingKeySecretRef is not an integration key');
      return { record: { type: 'pagerduty', routingKey: seal('routingKey', key), severity: spec.pagerduty.severity } };
    }
    case 'email': {
      const addresses = [...(spec.email?.addresses ?? [])];
      const problem = mailDomainProblem(addresses, mailDomains);
      return problem === null ? { record: { type: 'email', addresses } } : refuse('AddressNotAllowed', `spec.email.addresses: ${problem}`);
    }
    case 'webhook':
      return compileWebhook(spec.webhook, secrets, seal);
  }
}

function compileWebhook(
  webhook: PosthornObject<'NotificationChannel'>['spec']['webhook'],
  secrets: readonly ChannelSecret[],
  seal: (field: ChannelSecret['field'], plain: string) => string,
): Compiled<ChannelRecord> {
  const problem = urlProblem(webhook?.url ?? '');
  if (webhook === undefined || problem !== null) return refuse('InvalidUrl', `spec.webhook.url ${problem}`);
  const headers: { name: string; value: string }[] = [];
  for (const { header, value } of secrets) {
    if (header === undefined) continue;
    const plain = plainSecret(value);
    if (!headerValue.safeParse(plain).success)
      return refuse(
        'InvalidHeader',
        `the value of the header ${header} in spec.webhook.headers contains characters that HTTP does not allow`,
      );
    headers.push({ name: header, value: seal('headerValue', plain) });
  }
  const secret = secrets.find(({ field }) => field === 'signingSecrets');
  const signingSecrets = secret === undefined ? [] : standardWebhooksSecrets(secret.value);
  if (signingSecrets === null) {
    const problem = listedSecrets(secret?.value ?? '') === null ? tooManySecrets : `is not ${standardWebhooksSecretRule}`;
    return refuse('InvalidSigningSecret', `the value behind spec.webhook.signingSecretRef ${problem}`);
  }
  return {
    record: {
      type: 'webhook',
      url: webhook.url,
      headers,
      signingSecrets: signingSecrets.map((each) => seal('signingSecrets', each)),
    },
  };
}

function envelopesOf(channel: ChannelRecord | undefined): string[] {
  switch (channel?.type) {
    case 'slack':
    case 'teams':
    case 'discord':
      return [channel.webhookUrl];
    case 'pagerduty':
      return [channel.routingKey];
    case 'webhook':
      return [...channel.headers.map(({ value }) => value), ...channel.signingSecrets];
    case 'email':
    case undefined:
      return [];
  }
}
