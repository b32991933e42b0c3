import { beforeEach, describe, expect, test } from '@jest/globals';
import { controllerSuite } from '../../test/support/controller-suite.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { ObjectOf } from '../resources/kinds.ts';
import type { SharedKind } from '../resources/sharing.ts';
import type { ApplyObject } from '../store/store.ts';
import { idOf } from './held-ids.ts';

const suite = controllerSuite();

beforeEach(async () => {
  suite.start();
  for (const name of ['acme', 'globex', 'globex-labs']) await organization(name);
});

async function apply(object: ApplyObject) {
  return await suite.store.apply(object, { manager: 'test', force: true });
}

async function organization(name: string, spec: object = {}): Promise<void> {
  await apply({ kind: 'Organization', metadata: { name }, spec: { namespace: `ns-${name}`, ...spec } });
  await eventually(async () => expect(readyOf(await suite.store.get('Organization', { name }))).toMatchObject({ status: 'True' }));
}

async function deleteOrganization(name: string): Promise<void> {
  await suite.store.delete('Organization', { name });
  await eventually(async () => expect(suite.store.get('Organization', { name })).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' }));
}

/** The namespace of the organization, which has another name than the organization. */
const at = (organizationName: string, name: string) => ({ namespace: `ns-${organizationName}`, name });

interface Statuses {
  status?: { conditions?: { type: string; status: string; reason: string; message: string }[] | undefined } | undefined;
}
const conditionOf = ({ status }: Statuses, wanted: string) => status?.conditions?.find(({ type }) => type === wanted);
const readyOf = (object: Statuses) => conditionOf(object, 'Ready');

async function expectReason(kind: SharedKind | 'Route' | 'WebhookSubscription', organizationName: string, name: string, reason: string) {
  return await eventually(async () => {
    const object = await suite.store.get(kind, at(organizationName, name));
    expect(object.status?.observedGeneration).toBe(object.metadata.generation);
    expect([name, readyOf(object)?.reason]).toEqual([name, reason]);
    return object;
  });
}

const isNew = { field: 'payload.new', operator: 'equals', value: true };
const isOld = { field: 'payload.old', operator: 'equals', value: true };

interface Sharable {
  kind: SharedKind;
  reference: 'transformRef' | 'filterRef' | 'schemaRef';
  content: object;
  other: object;
  invalid: object;
}
const sharable: Sharable[] = [
  { kind: 'Transform', reference: 'transformRef', content: { code: '{"a": 1}' }, other: { code: '{"b": 2}' }, invalid: { code: '{' } },
  {
    kind: 'Filter',
    reference: 'filterRef',
    content: { conditions: [isNew] },
    other: { conditions: [isOld] },
    invalid: { conditions: [{ field: 'payload.a', operator: 'matches', value: '(' }] },
  },
  {
    kind: 'PayloadSchema',
    reference: 'schemaRef',
    content: { jsonSchema: { type: 'object' } },
    other: { jsonSchema: { type: 'array' } },
    invalid: { jsonSchema: { type: 'objekt' } },
  },
];

async function share({ kind }: Sharable, content: object, sharedWith: string[], name = 'shared', owner = 'acme') {
  return await apply({ kind, metadata: at(owner, name), spec: { ...content, sharedWith } } as ApplyObject);
}

async function take({ kind }: Sharable, taker = 'globex', from: object = { organization: 'acme', name: 'shared' }) {
  return (await apply({ kind, metadata: at(taker, 'mine'), spec: { sharedFrom: from } } as ApplyObject)) as ObjectOf<SharedKind>;
}

/** A route of globex with its source and destination, which refers to `mine`. */
async function route(reference: string): Promise<string> {
  await apply({ kind: 'Source', metadata: at('globex', 'orders'), spec: {} });
  await apply({ kind: 'Destination', metadata: at('globex', 'shop'), spec: { http: { url: 'https://shop.example/hook' } } });
  const made = await apply({
    kind: 'Route',
    metadata: at('globex', 'all'),
    spec: { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }], [reference]: { name: 'mine' } },
  } as ApplyObject);
  return idOf('Route', made as ObjectOf<'Route'>);
}

/** Published content of the taker: that of its records. */
async function inForce({ kind }: Sharable, id: string, routeId: string): Promise<object | null> {
  const { registry } = suite.controllers;
  const org = idOf('Organization', await suite.store.get('Organization', { name: 'globex' }));
  if (kind === 'Filter') {
    const { filter, org: owner } = (await registry.get('route', routeId)) ?? {};
    if (owner !== undefined) expect(owner).toBe(org);
    return filter ? { conditions: filter.conditions } : null;
  }
  const record = await registry.get(kind === 'Transform' ? 'transform' : 'payloadSchema', id);
  if (record === null) return null;
  expect(record.org).toBe(org);
  return 'code' in record ? { code: record.code } : { jsonSchema: JSON.parse(record.jsonSchema) as object };
}

/** The fate of the copy: a filter stays in the route as published, as that of a deleted Filter does. */
const afterwards = ({ kind, content }: Sharable): object | null => (kind === 'Filter' ? content : null);

async function expectLost(sharing: Sharable, id: string, routeId: string): Promise<void> {
  await expectReason(sharing.kind, 'globex', 'mine', 'RefNotPermitted');
  await expectReason('Route', 'globex', 'all', `${sharing.kind}NotReady`);
  await eventually(async () => expect(await inForce(sharing, id, routeId)).toEqual(afterwards(sharing)));
  const published = await suite.controllers.registry.get('route', routeId);
  // Its events are neither lost nor delivered as they came in.
  expect([published?.transformId, published?.schemaId, published?.filter]).toContainEqual(
    sharing.kind === 'Filter' ? expect.anything() : id,
  );
}

describe.each(sharable)('$kind', (sharing) => {
  const { kind, reference, content, other } = sharing;

  test(`a shared ${kind} is in force for the organization that takes it over, under an id of its own, and follows each change`, async () => {
    const original = (await share(sharing, content, ['globex'])) as ObjectOf<SharedKind>;
    const taken = await take(sharing);
    const routeId = await route(reference);
    await expectReason(kind, 'globex', 'mine', 'Ready');
    await expectReason('Route', 'globex', 'all', 'Ready');
    const id = idOf(kind, taken);
    expect(id).not.toBe(idOf(kind, original));
    expect(await inForce(sharing, id, routeId)).toEqual(content);
    await share(sharing, other, ['globex', 'initech']);
    await eventually(async () => expect(await inForce(sharing, id, routeId)).toEqual(other));
  });

  test(`a ${kind} that is not there, that nobody shares and that is shared with others have the same message`, async () => {
    const messages = new Set<string>();
    const note = async () => {
      const object = await expectReason(kind, 'globex', 'mine', 'RefNotPermitted');
      expect(conditionOf(object, 'ResolvedRefs')).toMatchObject({ status: 'False', reason: 'RefNotPermitted' });
      messages.add(conditionOf(object, 'ResolvedRefs')?.message ?? '');
    };
    await take(sharing);
    await note();
    for (const organizations of [[], ['globex-labs'], ['globe'], ['ns-globex']]) {
      await share(sharing, content, organizations);
      await expectReason(kind, 'acme', 'shared', 'Ready');
      await note();
    }
    expect([...messages]).toEqual([`the organization acme shares no ${kind} shared with this organization`]);
    await share(sharing, content, ['globex']);
    await expectReason(kind, 'globex', 'mine', 'Ready');
    // Nor is the name of a namespace that of an organization.
    for (const owner of ['ns-acme', 'nobody']) {
      await take(sharing, 'globex', { organization: owner, name: 'shared' });
      await expectReason(kind, 'globex', 'mine', 'RefNotPermitted');
    }
  });

  test(`a ${kind} of the same name in the own organization is another one`, async () => {
    await share(sharing, other, [], 'shared', 'globex');
    await share(sharing, content, ['globex']);
    const taken = await take(sharing);
    const routeId = await route(reference);
    await expectReason('Route', 'globex', 'all', 'Ready');
    expect(await inForce(sharing, idOf(kind, taken), routeId)).toEqual(content);
  });

  test.each([
    ['the consent is withdrawn', () => share(sharing, content, ['globex-labs']), () => share(sharing, content, ['globex'])],
    ['the shared object is deleted', () => suite.store.delete(kind, at('acme', 'shared')), () => share(sharing, content, ['globex'])],
    ['the owner is deleted and retained', () => deleteOrganization('acme'), () => organization('acme')],
  ])(`a ${kind} goes out of force when %s, and comes back`, async (_, withdraw, restore) => {
    await share(sharing, content, ['globex', 'globex-labs']);
    const id = idOf(kind, await take(sharing));
    await take(sharing, 'globex-labs');
    const routeId = await route(reference);
    await expectReason('Route', 'globex', 'all', 'Ready');
    await expectReason(kind, 'globex-labs', 'mine', 'Ready');
    await withdraw();
    await expectLost(sharing, id, routeId);
    await restore();
    await expectReason('Route', 'globex', 'all', 'Ready');
    await eventually(async () => expect(await inForce(sharing, id, routeId)).toEqual(content));
  });

  test(`a ${kind} goes out of force with an owner that is deleted for good`, async () => {
    await organization('acme', { deletionPolicy: 'Delete' });
    await share(sharing, content, ['globex']);
    const id = idOf(kind, await take(sharing));
    const routeId = await route(reference);
    await expectReason('Route', 'globex', 'all', 'Ready');
    await suite.store.delete('Organization', { name: 'acme' });
    await expectLost(sharing, id, routeId);
  });

  test(`a ${kind} that its owner makes unusable leaves what was taken over before in force`, async () => {
    await share(sharing, content, ['globex']);
    const id = idOf(kind, await take(sharing));
    const routeId = await route(reference);
    await expectReason('Route', 'globex', 'all', 'Ready');
    await share(sharing, sharing.invalid, ['globex']);
    await expectReason(kind, 'globex', 'mine', `${kind}NotAccepted`);
    expect(await inForce(sharing, id, routeId)).toEqual(content);
  });

  test(`a ${kind} that was taken over cannot be shared on, and has no content of its own`, async () => {
    const sharedFrom = { organization: 'acme', name: 'shared' };
    const refused = expect.objectContaining({ code: 'VALIDATION_FAILED' });
    const make = (spec: object) => apply({ kind, metadata: at('globex', 'mine'), spec } as ApplyObject);
    await expect(make({ sharedFrom, sharedWith: ['globex-labs'] })).rejects.toEqual(refused);
    await expect(make({ sharedFrom, ...content })).rejects.toEqual(refused);
    await expect(make({})).rejects.toEqual(refused);
    for (const name of ['Acme', 'acme/x', '*', ''])
      await expect(make({ sharedFrom: { organization: name, name: 'shared' } })).rejects.toEqual(refused);
    const names = Array.from({ length: 101 }, (_, index) => `org-${index}`);
    await expect(make({ ...content, sharedWith: names })).rejects.toEqual(refused);
    await expect(make({ ...content, sharedWith: ['*'] })).rejects.toEqual(refused);
    await make({ ...content, sharedWith: names.slice(1) });
  });

  test(`objects that name each other, or themselves, as the ${kind} to take over are not permitted`, async () => {
    await take(sharing, 'acme', { organization: 'globex', name: 'mine' });
    await take(sharing, 'globex', { organization: 'acme', name: 'mine' });
    await take(sharing, 'globex-labs', { organization: 'globex-labs', name: 'mine' });
    for (const name of ['acme', 'globex', 'globex-labs']) await expectReason(kind, name, 'mine', 'RefNotPermitted');
  });
});
