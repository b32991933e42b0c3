import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { storedObject } from '../../test/support/objects.ts';
import { Keyring } from '../core/sealing.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import type { SpecInputOf } from '../resources/kinds.ts';
import { type ChannelSecret, compileNotificationChannel } from './notification-channel.ts';
import { organizationFacts } from './organization.ts';

const keyring = new Keyring([{ id: 'k1', key: randomBytes(32) }]);
const organization = organizationFacts(storedObject('Organization', 'acme', { namespace: 'acme' }));

describe('a NotificationChannel', () => {
  const ref = { name: 's', key: 'k' };
  const slack = { type: 'slack' as const, slack: { webhookUrlSecretRef: ref } };
  const compiled = (spec: SpecInputOf<'NotificationChannel'>, ...secrets: ChannelSecret[]) =>
    compileNotificationChannel(storedObject('NotificationChannel', 'ops', spec, 'acme'), {
      organization,
      secrets,
      keyring,
      mailDomains: [],
      published: null,
    });

  test('a NotificationChannel has its credentials sealed in the record', () => {
    const url = 'https://hooks.slack.com/services/canary';
    const { record } = compiled(slack, { field: 'webhookUrl', value: `${url}\n` });
    expect(JSON.stringify(record)).not.toContain('canary');
    if (record?.channel.type !== 'slack') throw new Error('not a Slack record');
    expect(
      keyring.open(record.channel.webhookUrl, recordSealingContext(organization.id, 'notificationChannel', record.id, 'webhookUrl')),
    ).toBe(url);
  });

  test.each<[string, SpecInputOf<'NotificationChannel'>, ChannelSecret, string]>([
    ['a URL of another service', slack, { field: 'webhookUrl', value: 'https://canary.example/' }, 'InvalidWebhookUrl'],
    [
      'an empty routing key',
      { type: 'pagerduty', pagerduty: { routingKeySecretRef: ref } },
      { field: 'routingKey', value: '\n' },
      'InvalidRoutingKey',
    ],
    [
      'a header value with a line break',
      { type: 'webhook', webhook: { url: 'https://a.example/' } },
      { field: 'headerValue', header: 'X-A', value: 'canary\r\nX-B: 1' },
      'InvalidHeader',
    ],
    [
      'a malformed signing secret',
      { type: 'webhook', webhook: { url: 'https://a.example/' } },
      { field: 'signingSecrets', value: 'canary' },
      'InvalidSigningSecret',
    ],
  ])('a NotificationChannel with %s behind its reference is refused without repeating the value', (_, spec, value, reason) => {
    const { refusal } = compiled(spec, value);
    expect(refusal?.reason).toBe(reason);
    expect(refusal?.message).not.toContain('canary');
  });

  test.each<[number, string | undefined]>([
    [10, undefined],
    [11, 'the value behind spec.webhook.signingSecretRef contains more than 10 secrets and keys'],
  ])('a NotificationChannel with %i signing secrets behind its reference has the refusal %j', (count, message) => {
    const secrets = Array.from({ length: count }, () => `whsec_${randomBytes(24).toString('base64')}`);
    const spec: SpecInputOf<'NotificationChannel'> = { type: 'webhook', webhook: { url: 'https://a.example/', signingSecretRef: ref } };
    expect(compiled(spec, { field: 'signingSecrets', value: secrets.join('\n') }).refusal?.message).toBe(message);
  });
});
