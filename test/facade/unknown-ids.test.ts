import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newEvent } from '../support/new-event.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let destination = { id: '', slug: '' };
let source = { id: '', slug: '' };
let route = { id: '' };
beforeAll(async () => {
  world = await startFacadeWorld();
  const made = async (path: string, body: object) => (await world.request('POST', `/api/${path}`, { body })).body;
  destination = await made('destinations', { name: 'Shop', type: 'http', url: 'https://shop.example.com/hooks' });
  source = await made('sources', { name: 'Git', provider: 'generic' });
  route = await made('routes', { name: 'All', sourceId: source.id, destinationIds: [destination.id] });
});
afterAll(() => world.stop());

const ids = { sourceId: () => source, destinationId: () => destination, routeId: () => route };
const nouns = { sourceId: 'source', destinationId: 'destination', routeId: 'route' };
const unknown = {
  sourceId: 'src_aaaaaaaaaaaaaaaaaaaaaaaaaa',
  destinationId: 'dst_aaaaaaaaaaaaaaaaaaaaaaaaaa',
  routeId: 'rte_aaaaaaaaaaaaaaaaaaaaaaaaaa',
};

test.each([
  ['events', 'sourceId'],
  ['events', 'routeId'],
  ['events', 'destinationId'],
  ['deliveries', 'routeId'],
  ['deliveries', 'destinationId'],
  ['routes', 'sourceId'],
  ['routes', 'destinationId'],
  ['analytics/series', 'sourceId'],
  ['analytics/series', 'routeId'],
  ['analytics/series', 'destinationId'],
] as const)('GET /%s with an unknown %s is 404; that of another organization, or of a part of Redis, is unknown', async (path, name) => {
  const { id } = ids[name]();
  expect((await world.request('GET', `/api/${path}?${name}=${id}`)).status).toBe(200);
  const other = `other-${path.replace('/', '-')}-${name.toLowerCase()}`;
  await world.addOrganization(other);
  const stranger = await world.addKey(other);
  const asked: [string, string | undefined][] = [
    [unknown[name], undefined],
    ['nobody', undefined],
    [`ev:${id}`, undefined],
    [id, stranger],
  ];
  for (const [wanted, key] of asked) {
    const { status, body } = await world.request('GET', `/api/${path}?${name}=${encodeURIComponent(wanted)}`, { key });
    expect([wanted, status, body.code, body.message]).toEqual([
      wanted,
      404,
      'RESOURCE_NOT_FOUND',
      `There is no ${nouns[name]} "${wanted}".`,
    ]);
  }
});

test('the id of what is deleted is known as long as there is history of it', async () => {
  const org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  const event = newEvent({ org, sourceId: unknown.sourceId, targets: [] });
  const targets = newEvent().targets.map((target) => ({ ...target, routeId: unknown.routeId, destinationId: unknown.destinationId }));
  await world.acceptor.accept({ ...event, targets });
  for (const [path, name] of [
    ['events', 'sourceId'],
    ['deliveries', 'routeId'],
    ['deliveries', 'destinationId'],
  ] as const)
    expect((await world.request('GET', `/api/${path}?${name}=${unknown[name]}`)).body.data).toHaveLength(1);
});

test.each([
  ['destinations', () => destination],
  ['routes', () => route],
] as const)('an export of %s names the ids that are unknown, and is imported as it is', async (path, known) => {
  const query = `ids=${known().id},nobody,${encodeURIComponent('no\n"one')}`;
  const { status, body } = await world.request('GET', `/api/${path}/export?${query}`);
  expect([status, body[path].length, body.missingIds]).toEqual([200, 1, ['nobody', 'no\n"one']]);
  expect((await world.request('GET', `/api/${path}/export?ids=${known().id}`)).body.missingIds).toBeUndefined();
  expect((await world.request('GET', `/api/${path}/export`)).body.missingIds).toBeUndefined();
  const manifests = await world.request('GET', `/api/${path}/export?${query}`, { headers: { accept: 'application/yaml' } });
  expect(manifests.text.split('\n')[0]).toBe('# missingIds: ["nobody","no\\n\\"one"]');
  const imported = await world.request('POST', `/api/${path}/import`, { body: { ...body, conflictStrategy: 'skip', validateOnly: true } });
  expect(imported.status).toBe(200);
});
