import { text, type ValidationCase } from './case.ts';

const kind = 'WebhookEventType' as const;
const named = (name: string, spec: Record<string, unknown>, metadataName = name.replaceAll('_', '-')) => ({
  metadata: { name: metadataName },
  spec: { name, ...spec },
});
const valid = (about: string, name: string, spec: Record<string, unknown> = {}): ValidationCase => ({
  name: about,
  kind,
  object: named(name, spec),
});
const invalid = (about: string, object: ValidationCase['object'], field: string): ValidationCase => ({
  name: about,
  kind,
  object,
  invalid: field,
});

export const webhookEventTypeCases: ValidationCase[] = [
  valid('the smallest one', 'order.paid'),
  valid('one word', 'ping'),
  invalid('a display name with a control character', named('ping', { displayName: 'a\u0007' }), 'spec.displayName'),
  invalid('a category of two lines', named('ping', { category: 'a\nb' }), 'spec.category'),
  valid('a message of two lines', 'ping', { deprecated: true, deprecatedMessage: 'a\nb' }),
  valid('underscores', 'order.line_item.added_again'),
  valid('digits', '2fa.code_1'),
  valid('the longest name', `${text(49)}.${text(50)}`),
  valid('everything', 'order.refunded', {
    displayName: 'Refunded',
    description: '',
    category: 'Orders',
    schema: '{"type":"object"}',
    examplePayload: '{"id":1}',
    documentationUrl: 'https://docs.example/refunds',
    enabled: false,
    deprecated: true,
    deprecatedMessage: 'Use order.returned.',
    expiresAfterSeconds: 2_592_000,
  }),
  invalid('an expiry of nothing', named('ping', { expiresAfterSeconds: 0 }), 'spec.expiresAfterSeconds'),
  valid('a schema that is none, which the controller refuses', 'order.broken', { schema: '{' }),
  invalid('a name too long', named(`${text(50)}.${text(50)}`, {}), 'spec.name'),
  ...['Order.paid', 'order..paid', 'order.', '.paid', 'order._paid', 'order.paid_', 'order-paid', 'order paid', 'örder'].map((name) =>
    invalid(`the name ${name}`, { metadata: { name: 'order.paid' }, spec: { name } }, 'spec.name'),
  ),
  invalid('no name', { metadata: { name: 'order.paid' }, spec: {} }, 'spec.name'),
  invalid('an object name of another event type', named('order.paid', {}, 'order.sent'), 'metadata.name'),
  invalid('an object name that keeps no dot', named('order.paid', {}, 'order-paid'), 'metadata.name'),
  invalid('a name that API paths use', named('by_external_id', {}), 'metadata.name'),
  invalid('a schema that is no text', named('order.paid', { schema: 7 }), 'spec.schema'),
  invalid('a schema too long', named('order.paid', { schema: text(65_537) }), 'spec.schema'),
  invalid('a description too long', named('order.paid', { description: text(1001) }), 'spec.description'),
  invalid('a category too long', named('order.paid', { category: text(101) }), 'spec.category'),
  invalid('documentation that is no URL', named('order.paid', { documentationUrl: 'docs' }), 'spec.documentationUrl'),
  invalid('documentation at a number in brackets', named('order.paid', { documentationUrl: 'https://[0]' }), 'spec.documentationUrl'),
  invalid('an unknown field', named('order.paid', { isEnabled: true }), 'spec.isEnabled'),
  {
    name: 'another name',
    kind,
    old: named('order.paid', {}),
    object: { spec: { name: 'order.sent' } },
    invalid: 'metadata.name',
  },
];
