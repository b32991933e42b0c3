import { describe, expect, test } from '@jest/globals';
import { type EventTypeRecord, recordLayoutVersion } from '../core/records.ts';
import type { PosthornObject } from '../resources/kinds.ts';
import { compileWebhookEventType } from './webhook-event-type.ts';

const organization = { id: 'org_a', slug: 'a', namespace: 'a', plan: 'enterprise' as const, payloadLimitBytes: 1 };
const noon = Date.parse('2026-01-31T12:00:00Z');

const record = (changes: Partial<EventTypeRecord>): EventTypeRecord => ({
  v: recordLayoutVersion,
  id: 'etp_a',
  org: 'org_a',
  name: 'order.paid',
  enabled: true,
  schema: null,
  schemaVersion: 1,
  deprecatedAtMs: null,
  generation: 1,
  ...changes,
});

function compiled(
  inputs: { schema?: string | null; published?: EventTypeRecord | null; deprecated?: boolean },
  status: PosthornObject<'WebhookEventType'>['status'] = {},
): EventTypeRecord {
  const { schema = null, published = null, deprecated = false } = inputs;
  const object: PosthornObject<'WebhookEventType'> = {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'WebhookEventType',
    metadata: {
      name: 'order.paid',
      uid: 'b4f1c8f2-0f5e-4f0e-9a44-3f2f7c1d2e3a',
      resourceVersion: '1',
      generation: 4,
      creationTimestamp: '2026-01-31T12:00:00Z',
    },
    spec: { name: 'order.paid', enabled: true, deprecated },
    status,
  };
  return compileWebhookEventType(object, { organization, schema, published, nowMs: noon });
}

describe('the version of the schema', () => {
  test('the version of the schema begins with 1, with a schema or without', () => {
    expect(compiled({}).schemaVersion).toBe(1);
    expect(compiled({ schema: '{}' }).schemaVersion).toBe(1);
  });

  test('the version of the schema grows with another schema, with the first one and with none', () => {
    expect(compiled({ schema: '{}', published: record({ schema: '{}', schemaVersion: 3 }) }).schemaVersion).toBe(3);
    expect(compiled({ schema: '{"a":1}', published: record({ schema: '{}', schemaVersion: 3 }) }).schemaVersion).toBe(4);
    expect(compiled({ schema: '{}', published: record({ schemaVersion: 3 }) }).schemaVersion).toBe(4);
    expect(compiled({ published: record({ schema: '{}', schemaVersion: 3 }) }).schemaVersion).toBe(4);
  });

  test('the version of the schema continues from the status when Redis was emptied', () => {
    expect(compiled({ schema: '{}' }, { schemaVersion: 7, observedGeneration: 4 }).schemaVersion).toBe(7);
    expect(compiled({ schema: '{}' }, { schemaVersion: 7, observedGeneration: 3 }).schemaVersion).toBe(8);
  });
});

describe('since when it is deprecated', () => {
  test('is now, at first, and then what it was', () => {
    expect(compiled({ deprecated: true }).deprecatedAtMs).toBe(noon);
    expect(compiled({ deprecated: true, published: record({ deprecatedAtMs: 5 }) }).deprecatedAtMs).toBe(5);
    expect(compiled({ deprecated: true }, { deprecatedAt: '2026-01-01T00:00:00Z' }).deprecatedAtMs).toBe(
      Date.parse('2026-01-01T00:00:00Z'),
    );
  });

  test('is nothing when it is not', () => {
    expect(compiled({ published: record({ deprecatedAtMs: 5 }) }, { deprecatedAt: '2026-01-01T00:00:00Z' }).deprecatedAtMs).toBeNull();
  });
});
