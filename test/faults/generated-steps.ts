import fc from 'fast-check';
import type { ConfigurationKind } from '../../src/resources/kinds.ts';
import { type Declared, declared, organization, secret } from '../support/every-kind.ts';

/** One thing that happens to an installation. `at`: which of the pool; `variant`: which of its variants. */
export type Step =
  | { do: 'declare'; at: number; variant: number }
  | { do: 'delete'; at: number }
  | { do: 'restart' }
  /** The controllers die when so many of their writes have changed something. */
  | { do: 'die'; changes: number }
  | { do: 'pass'; ms: number };

export interface Variant {
  object: Declared;
  /** The store itself refuses it. */
  isInvalid: boolean;
}

/** Something that may be declared, in each way in which it may be. */
export type Variants = readonly Variant[];

const ref = (name: string) => ({ name });
const keyIn = (key: string) => ({ name: 'keys', key });
const whsec = (byte: number): string => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;

function variants(kind: ConfigurationKind, name: string, valid: readonly object[], invalid: readonly object[] = []): Variants {
  return [
    ...valid.map((spec) => ({ object: declared(kind, name, spec), isInvalid: false })),
    ...invalid.map((spec) => ({ object: declared(kind, name, spec), isInvalid: true })),
  ];
}

const http = (more: object = {}, rest: object = {}) => ({ http: { url: 'https://shop.example/hook', ...more }, ...rest });
const warehouse = (key: string, more: object = {}) => ({
  type: 's3',
  s3: { bucket: 'acme-events', region: 'eu-central-1', accessKeyId: 'AKIAEXAMPLE', secretAccessKeySecretRef: keyIn(key) },
  warehouse: more,
});
const route = (more: object) => ({ sourceRef: ref('orders'), destinationRefs: [ref('one')], ...more });
const endpoint = (more: object) => ({
  applicationRef: ref('shop'),
  url: 'https://shop.example/hooks',
  signingSecretRef: keyIn('signing'),
  ...more,
});
const subscription = (more: object) => ({ endpointRef: ref('hooks'), eventTypeRef: ref('order.paid'), ...more });
const cron = (more: object) => ({ schedule: '30 6 1 7 *', url: 'https://reports.example/run', ...more });
const replay = (more: object) => ({ what: 'messages', ...more });
const values = { signing: whsec(1), token: 'first', slack: 'https://hooks.slack.com/services/T0/B0/one', archive: 'first-key' };

/** Valid ones, those at a bound, those that the controllers refuse, and those that the store does. */
export const pool: readonly Variants[] = [
  [
    { object: organization(), isInvalid: false },
    { object: organization({ plan: 'free' }), isInvalid: false },
    { object: organization({ limits: { payloadBytes: 1024 }, archive: { destinationRef: ref('two') } }), isInvalid: false },
    { object: organization({ limits: { payloadBytes: 1023 } }), isInvalid: true },
    { object: organization({ namespace: 'another' }), isInvalid: true },
  ],
  variants(
    'Source',
    'orders',
    [
      {},
      { provider: 'standard-webhooks', signingSecretRef: keyIn('signing') },
      { provider: 'standard-webhooks', signingSecretRef: keyIn('absent') },
      { rateLimitPerMinute: 1 },
    ],
    [{ provider: 'nobody' }, { rateLimitPerMinute: 0 }],
  ),
  variants(
    'Destination',
    'one',
    [
      http(),
      http({ auth: { type: 'bearer', tokenSecretRef: keyIn('token') }, signingSecretRef: keyIn('signing') }),
      http({}, { retryPolicy: { maxRetries: 25 } }),
      http({ forwardHeaders: ['X-GitHub-Event'] }),
      http({}, { throttle: { mode: 'rate', rateLimit: 1, rateUnit: 'second' } }),
      http({ auth: { type: 'bearer', tokenSecretRef: keyIn('absent') } }),
    ],
    [http({}, { retryPolicy: { maxRetries: 26 } }), { type: 'ftp' }],
  ),
  variants(
    'Destination',
    'two',
    [warehouse('archive'), warehouse('archive', { prefix: 'orders' }), warehouse('absent')],
    [warehouse('archive', { partitionBy: 'never' })],
  ),
  variants('Filter', 'main', [
    { conditions: [{ field: 'payload.ref', operator: 'equals', value: 'main' }] },
    { conditions: [{ field: 'payload.ref', operator: 'matches', value: '(' }] },
  ]),
  variants('Transform', 'short', [{ code: 'payload.id' }, { code: '{"n": payload.number}' }, { code: '(' }], [{ code: '' }]),
  variants('PayloadSchema', 'push', [{ jsonSchema: {} }, { jsonSchema: { type: 'object' } }, { jsonSchema: { type: 'nothing' } }]),
  variants('NotificationChannel', 'on-call', [
    { type: 'slack', slack: { webhookUrlSecretRef: keyIn('slack') } },
    { type: 'slack', slack: { webhookUrlSecretRef: keyIn('absent') } },
  ]),
  variants(
    'Route',
    'all',
    [
      route({}),
      route({ filterRef: ref('main'), schemaRef: ref('push'), transformRef: ref('short') }),
      route({ failover: { destinationRefs: [ref('two')], afterAttempts: 10 } }),
      route({ destinationRefs: [ref('one'), ref('lost')] }),
      route({ destinationRefs: [] }),
      route({ notifications: { onFailure: true, channelRefs: [ref('on-call')] } }),
    ],
    [route({ failover: { destinationRefs: [ref('one')] } }), route({ failover: { destinationRefs: [ref('two')], afterAttempts: 11 } })],
  ),
  variants('Route', 'second', [route({ destinationRefs: [ref('two')], filterRef: ref('main') })]),
  variants('HttpCronJob', 'yearly', [cron({}), cron({ useStaticIp: true }), cron({ timeZone: 'Nowhere/Else' })], [cron({ schedule: 'x' })]),
  variants('Replay', 'again', [replay({}), replay({ suspend: true })], [replay({ destinationRef: ref('one') })]),
  // What it selects cannot change.
  variants('Replay', 'unreadable', [replay({ filter: { where: 'event.' } })]),
  variants('ApiKey', 'ci', [{ sha256: '0'.repeat(64) }, { sha256: 'f'.repeat(64), role: 'viewer' }], [{ sha256: 'f'.repeat(63) }]),
  variants(
    'WebhookEventType',
    'order.paid',
    [{ name: 'order.paid' }, { name: 'order.paid', schema: '{"type":"object"}' }, { name: 'order.paid', schema: '{' }],
    [{ name: 'Order Paid' }],
  ),
  variants('WebhookApplication', 'shop', [{}, { externalId: 'customer-17' }, { metadata: { note: 'x'.repeat(9000) } }]),
  variants('WebhookEndpoint', 'hooks', [
    endpoint({}),
    endpoint({ url: 'https://shop.example/two', enabled: false }),
    endpoint({ url: 'http://shop.example/hooks' }),
    endpoint({ signingSecretRef: keyIn('token') }),
  ]),
  variants(
    'WebhookSubscription',
    'paid',
    [subscription({}), subscription({ filterExpression: '((' }), subscription({ transformRef: ref('short') })],
    [subscription({ filterExpression: '' })],
  ),
  [
    { object: secret('keys', values), isInvalid: false },
    { object: secret('keys', { ...values, signing: whsec(2), token: 'second' }), isInvalid: false },
    { object: secret('keys', { ...values, signing: 'short', slack: 'no URL' }), isInvalid: false },
    { object: secret('keys', { token: 'alone' }), isInvalid: false },
  ],
];

const nat = fc.nat({ max: 1000 });

/** What comes again and again, in any order. The organization is there at the beginning and is not deleted in between. */
export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: fc.record({ do: fc.constant('declare' as const), at: nat, variant: nat }) },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('delete' as const), at: nat }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('die' as const), changes: fc.integer({ min: 1, max: 6 }) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 8000 }) }) },
  ),
  { minLength: 10, maxLength: 60 },
);

/** Which kinds are in the webhook store: what is in force there depends on what was before. */
export function isWebhook(name: string): boolean {
  return /^Webhook(Application|Endpoint|Subscription) /.test(name);
}
