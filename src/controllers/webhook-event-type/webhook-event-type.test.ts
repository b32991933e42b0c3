import { beforeEach, expect, test } from '@jest/globals';
import { controllerSuite } from '../../../test/support/controller-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import type { ObjectOf } from '../../resources/kinds.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const suite = controllerSuite();

beforeEach(async () => {
  suite.start();
  await suite.store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } }, { manager: 'test' });
  await eventually(() => suite.store.get('Namespace', { name: 'acme' }));
});

const key = { namespace: 'acme', name: 'order.line-item' };
const apply = (spec: object) =>
  suite.store.apply(
    { kind: 'WebhookEventType', metadata: key, spec: { name: 'order.line_item', ...spec } },
    { manager: 'test', force: true },
  );

/** The event type once the controllers have seen what was written last. */
function seen(): Promise<ObjectOf<'WebhookEventType'>> {
  return eventually(async () => {
    const object = await suite.store.get('WebhookEventType', key);
    expect(object.status?.observedGeneration).toBe(object.metadata.generation);
    return object;
  });
}
const condition = ({ status }: ObjectOf<'WebhookEventType'>, type: string) => status?.conditions?.find((each) => each.type === type);

test('an event type is published under its name, with the version of its schema', async () => {
  await apply({ schema: '{"type":"object"}' });
  const object = await seen();
  expect(condition(object, 'Ready')).toMatchObject({ status: 'True' });
  expect(object.status).toMatchObject({ id: expect.stringMatching(/^etp_/), schemaVersion: 1 });
  const id = object.status?.id ?? '';
  const org = (await suite.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  expect(await suite.redis.client.hget(`${suite.prefix}{cfg}:ix:event-type`, `${org}/order.line_item`)).toBe(id);
  expect(await suite.controllers.registry.get('eventType', id)).toMatchObject({
    name: 'order.line_item',
    enabled: true,
    schema: '{"type":"object"}',
  });
  await apply({ schema: '{ "type": "object" }' });
  expect((await seen()).status?.schemaVersion).toBe(1);
  await apply({ schema: '{"type":"object","required":["id"]}' });
  expect((await seen()).status?.schemaVersion).toBe(2);
});

test.each([
  [{ schema: '{"type":' }, 'InvalidSchema', /^schema: not JSON/],
  [{ schema: '{"type":"objekt"}' }, 'InvalidSchema', /type/],
  [{ examplePayload: "{'id': 1}" }, 'InvalidExamplePayload', /^examplePayload: not JSON/],
])('%j is not accepted, and what was in force before stays', async (spec, reason, message) => {
  await apply({ schema: '{}' });
  const { status } = await seen();
  await apply(spec);
  const object = await seen();
  expect(condition(object, 'Accepted')).toMatchObject({ status: 'False', reason, message: expect.stringMatching(message) });
  expect(await suite.controllers.registry.get('eventType', status?.id ?? '')).toMatchObject({ schema: '{}' });
});

test('the time when it was deprecated stays through changes and ends with the deprecation', async () => {
  await apply({ deprecated: true });
  const { deprecatedAt } = (await seen()).status ?? {};
  expect(Date.parse(deprecatedAt ?? '')).toBeGreaterThan(systemClock.now() - 60_000);
  await apply({ deprecated: true, deprecatedMessage: 'Use order.item.' });
  expect((await seen()).status?.deprecatedAt).toBe(deprecatedAt);
  await apply({ deprecated: false });
  expect((await seen()).status?.deprecatedAt).toBeUndefined();
});

test('an event type that is deleted is no longer published', async () => {
  await apply({});
  const { status } = await seen();
  await suite.store.delete('WebhookEventType', key);
  await eventually(async () => expect(await suite.controllers.registry.get('eventType', status?.id ?? '')).toBeNull());
  expect(await suite.redis.client.exists(`${suite.prefix}{cfg}:ix:event-type`)).toBe(0);
});
