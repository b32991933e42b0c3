import { many, secretRef, specCases, text, type ValidationCase } from './case.ts';

const { valid, invalid, validChange, invalidChange } = specCases('NotificationChannel', {});
const slack = { type: 'slack', slack: { webhookUrlSecretRef: secretRef } };
const email = (...addresses: unknown[]) => ({ type: 'email', email: { addresses } });
const webhook = (settings: Record<string, unknown>) => ({
  type: 'webhook',
  webhook: { url: 'https://alerts.example.com/posthorn', ...settings },
});
const header = (name: string) => ({ name, valueSecretRef: secretRef });

export const notificationChannelCases: ValidationCase[] = [
  valid('Slack, with defaults', slack),
  valid('a null enabled takes the default', { ...slack, enabled: null }),
  valid('Teams', { type: 'teams', teams: { webhookUrlSecretRef: secretRef } }),
  valid('Discord', { type: 'discord', discord: { webhookUrlSecretRef: secretRef }, name: 'Ops', enabled: false }),
  valid('PagerDuty with the default severity', { type: 'pagerduty', pagerduty: { routingKeySecretRef: secretRef } }),
  valid('PagerDuty with a severity', { type: 'pagerduty', pagerduty: { routingKeySecretRef: secretRef, severity: 'info' } }),
  valid('e-mail', email('team@example.com', "o'neil+ops@mail.example.co.uk", 'root@localhost')),
  valid('the least webhook', webhook({})),
  valid('a webhook with everything', webhook({ headers: [header('X-Team'), header('Authorization')], signingSecretRef: secretRef })),
  invalid('no type', {}, 'spec.type'),
  invalid('an unknown type', { type: 'sms' }, 'spec.type'),
  invalid('Slack without its block', { type: 'slack' }, 'spec.slack'),
  invalid('Slack with the block of another type', { ...slack, teams: { webhookUrlSecretRef: secretRef } }, 'spec.teams'),
  invalid('an inline webhook URL', { type: 'slack', slack: { webhookUrl: 'https://hooks.slack.com/x' } }, 'spec.slack.webhookUrl'),
  invalid(
    'an unknown severity',
    { type: 'pagerduty', pagerduty: { routingKeySecretRef: secretRef, severity: 'fatal' } },
    'spec.pagerduty.severity',
  ),
  invalid('no addresses', email(), 'spec.email.addresses'),
  valid('50 addresses', email(...many(50, (i) => `a${i}@example.com`))),
  invalid('51 addresses', email(...many(51, (i) => `a${i}@example.com`)), 'spec.email.addresses'),
  invalid('an address that is there twice', email('a@example.com', 'b@example.com', 'a@example.com'), 'spec.email.addresses[2]'),
  invalid('an address without a domain', email('team'), 'spec.email.addresses[0]'),
  invalid('an address with a name', email('Team <team@example.com>'), 'spec.email.addresses[0]'),
  invalid('an address with a line break', email('a@example.com\nBcc: b@example.com'), 'spec.email.addresses[0]'),
  invalid('an address with a comma', email('a@example.com,b@example.com'), 'spec.email.addresses[0]'),
  invalid('an address with an empty label', email('a@example..com'), 'spec.email.addresses[0]'),
  invalid('an address of 255 characters', email(`${text(243)}@example.com`), 'spec.email.addresses[0]'),
  invalid('a webhook without https', webhook({ url: 'http://alerts.example.com/' }), 'spec.webhook.url'),
  invalid('a header of browsers', webhook({ headers: [header('sec-fetch-mode')] }), 'spec.webhook.headers[0].name'),
  invalid('a header of ours', webhook({ headers: [header('webhook-id')] }), 'spec.webhook.headers[0].name'),
  invalid('a header that is there twice in other letters', webhook({ headers: [header('X-A'), header('x-a')] }), 'spec.webhook.headers'),
  invalid('21 headers', webhook({ headers: many(21, (i) => header(`X-${i}`)) }), 'spec.webhook.headers'),
  invalid('an unknown field', { ...slack, channel: '#ops' }, 'spec.channel'),
  validChange('another URL', slack, { type: 'slack', slack: { webhookUrlSecretRef: { name: 'other', key: 'url' } } }),
  invalidChange('another type', slack, email('team@example.com'), 'spec.type'),
];
