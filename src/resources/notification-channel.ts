import { z } from 'zod';
import { defineKind, type Rule } from './definition.ts';
import { emailAddress } from './email-address.ts';
import { commonStatus, displayName, secretKeyRef } from './fields.ts';
import { distinctHeadersRule, headerName, settableHeaderRule } from './http-header.ts';
import { ageColumn, enabledColumn, readyColumns } from './printer-columns.ts';
import { httpsUrl } from './url.ts';

const webhookUrl = (service: string) =>
  z.strictObject({ webhookUrlSecretRef: secretKeyRef.describe(`https URL of the incoming webhook of ${service}; it is a credential.`) });

const pagerduty = z.strictObject({
  routingKeySecretRef: secretKeyRef.describe('Integration key of an Events API v2 integration (32 characters).'),
  severity: z.enum(['critical', 'error', 'warning', 'info']).default('error').describe('Severity of the incidents.'),
});

const email = z.strictObject({
  addresses: z.array(emailAddress).min(1).max(50).meta({ 'x-kubernetes-list-type': 'set' }).describe('Who gets the e-mails.'),
});

const webhook = z.strictObject({
  url: httpsUrl.describe('Absolute https URL without user and password.'),
  headers: z
    .array(
      z.strictObject({
        name: headerName.describe('Name of the header.'),
        valueSecretRef: secretKeyRef.describe('Value of the header.'),
      }),
    )
    .max(20)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .optional()
    .describe('Sent with every alert.'),
  signingSecretRef: secretKeyRef.optional().describe('Alerts are signed with it as Standard Webhooks describes (whsec_ + base64).'),
});

const spec = z.strictObject({
  name: displayName.optional(),
  type: z.enum(['slack', 'teams', 'discord', 'pagerduty', 'email', 'webhook']).describe('Where the alerts go. Cannot be changed.'),
  enabled: z.boolean().default(true).describe('While false, no alerts are sent here.'),
  slack: webhookUrl('Slack').optional().describe('The incoming webhook, with type slack.'),
  teams: webhookUrl('Microsoft Teams').optional().describe('The workflow or incoming webhook, with type teams.'),
  discord: webhookUrl('Discord').optional().describe('The webhook, with type discord.'),
  pagerduty: pagerduty.optional().describe('The integration, with type pagerduty.'),
  email: email.optional().describe('The recipients, with type email.'),
  webhook: webhook.optional().describe('The endpoint, with type webhook.'),
});
type Spec = z.output<typeof spec>;

const blockRules = spec.shape.type.options.map(
  (type): Rule => ({
    at: '',
    cel: `(self.type == '${type}') == has(self.${type})`,
    message: `${type} is required with type ${type} and must be left out otherwise`,
    fieldPath: `.${type}`,
    check: (self: Spec) => (self.type === type) === (self[type] !== undefined),
  }),
);

export const notificationChannel = defineKind({
  kind: 'NotificationChannel',
  plural: 'notificationchannels',
  singular: 'notificationchannel',
  shortName: 'nch',
  scope: 'Namespaced',
  description: 'Where alerts about routes go: Slack, Microsoft Teams, Discord, PagerDuty, e-mail or a webhook.',
  idPrefix: 'nch_',
  noun: 'notification channel',
  recordKind: 'notificationChannel',
  world: 'both',
  isServed: true,
  workers: 4,
  hasSharedStatus: true,
  spec,
  status: z.strictObject({ ...commonStatus }),
  rules: [
    {
      at: 'type',
      transition: true,
      cel: 'self == oldSelf',
      message: 'cannot be changed; make another channel',
      check: (self: Spec['type'], oldSelf: Spec['type']) => self === oldSelf,
    },
    ...blockRules,
    settableHeaderRule('webhook.headers[].name'),
    distinctHeadersRule('webhook.headers'),
  ],
  printerColumns: [...readyColumns, { name: 'Type', type: 'string', jsonPath: '.spec.type' }, enabledColumn, ageColumn],
});
