import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { routeReadOnlyFields } from '../../src/facade/families/routes/portable-route.ts';
import { routeBody } from '../../src/facade/families/routes/route-body.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let made = 0;

beforeAll(async () => {
  world = await startFacadeWorld();
});
afterAll(() => world.stop());

/** Admin key of a new organization with a source and destinations. */
async function organization(): Promise<string> {
  const slug = `twice-${++made}`;
  await world.addOrganization(slug, 'enterprise');
  const key = await world.addKey(slug);
  await world.create('sources', { name: 'shop' }, key);
  for (const name of ['one', 'two']) await world.create('destinations', { name, url: 'https://hooks.example.com/' }, key);
  return key;
}
const importOf = async (collection: string, key: string, body: object) => {
  const answer = await world.request('POST', `/api/${collection}/import`, { key, body });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return answer.body;
};
const namesIn = async (collection: string, key: string): Promise<string[]> =>
  (await world.request('GET', `/api/${collection}?pageSize=100`, { key })).body.data.map(({ name }: { name: string }) => name).sort();

const route = (name: string, destinationSlugs: string[]) => ({ name, sourceSlug: 'shop', destinationSlugs });

describe('a record that connects what one before it in the document does', () => {
  const same = [route('A', ['one', 'two']), route('A', ['one', 'two'])];
  const named = [route('A', ['one', 'two']), route('B', ['two', 'one'])];
  const apart = [route('A', ['one']), route('A', ['two'])];
  const bare = [route('A', []), route('B', [])];
  const among = [route('A', ['one']), route('B', ['two']), route('C', ['one'])];

  test.each<[string, object[], string, string[] | string]>([
    ['the same record', same, 'skip', 'A'],
    ['the same record', same, 'overwrite', 'A'],
    ['the same record', same, 'rename', ['A', 'A']],
    ['a record of another name', named, 'skip', 'B'],
    ['a record of another name', named, 'overwrite', 'B'],
    ['a record of another name', named, 'rename', ['A', 'B']],
    ['the last of three', among, 'skip', 'C'],
    ['a record of the same name that connects something else', apart, 'skip', ['A', 'A']],
    ['a record that has lost its destinations as one before has', bare, 'skip', ['A', 'B']],
  ])('%s (%j) with %s: %j', async (_, routes, conflictStrategy, outcome) => {
    const key = await organization();
    const isRefused = typeof outcome === 'string';
    for (const validateOnly of [true, false]) {
      const answer = await importOf('routes', key, { routes, conflictStrategy, validateOnly });
      if (isRefused) {
        expect(answer).toMatchObject({ imported: 0, overwritten: 0, routes: [] });
        expect(answer.errors).toEqual([
          expect.stringMatching(new RegExp(`^Route "${outcome}": it connects the same source and destinations as the route "A"`)),
        ]);
      } else expect(answer).toMatchObject({ imported: outcome.length, errors: [] });
    }
    expect(await namesIn('routes', key)).toEqual(isRefused ? [] : outcome);
  });

  test('a record that connects what one before it in the document does is refused where the one before overwrites a route so, and taken where both routes connect it already', async () => {
    const key = await organization();
    await importOf('routes', key, { routes: [route('A', ['one']), route('B', ['one'])], conflictStrategy: 'rename' });
    const unchanged = { routes: [route('A', ['one']), route('B', ['one'])], conflictStrategy: 'overwrite' };
    expect(await importOf('routes', key, unchanged)).toMatchObject({
      overwritten: 2,
      errors: [],
      warnings: [expect.stringContaining('"A"')],
    });
    const changed = { routes: [route('A', ['two']), route('B', ['two'])], conflictStrategy: 'overwrite' };
    expect(await importOf('routes', key, changed)).toMatchObject({ overwritten: 0, errors: [expect.stringContaining('"B"')] });
    const added = { routes: [route('C', ['one']), ...unchanged.routes], conflictStrategy: 'overwrite' };
    const errors = ['A', 'B'].map((name) => expect.stringContaining(`Route "${name}": it connects`));
    expect(await importOf('routes', key, added)).toMatchObject({ imported: 0, overwritten: 0, errors });
  });
});

describe('a destination that is twice in a document', () => {
  const url = 'https://hooks.example.com/';
  const twice = (more: object = {}) => [
    { name: 'Orders', url, headers: Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`x-${n}`, 'a'])), timeoutMs: 1000, ...more },
    { name: 'Orders', url, timeoutMs: 2000, ...more },
  ];

  test.each<[string, object, string, object, number[]]>([
    ['without a slug', {}, 'skip', { imported: 1, skipped: 1 }, [1000]],
    ['without a slug', {}, 'overwrite', { imported: 1, overwritten: 1 }, [2000]],
    ['without a slug', {}, 'rename', { imported: 2 }, [1000, 2000]],
    ['with a slug', { slug: 'orders' }, 'skip', { imported: 1, skipped: 1 }, [1000]],
    ['with a slug', { slug: 'orders' }, 'overwrite', { imported: 1, overwritten: 1 }, [2000]],
    ['with a slug', { slug: 'orders' }, 'rename', { imported: 2 }, [1000, 2000]],
  ])('%s is taken in the order of the document (%j) with %s: %j', async (_, more, conflictStrategy, summary, timeouts) => {
    const key = await organization();
    expect(await importOf('destinations', key, { destinations: twice(more), conflictStrategy })).toMatchObject({
      summary: { failed: 0, ...summary },
    });
    const { body } = await world.request('GET', '/api/destinations/export', { key });
    const imported = body.destinations.filter(({ name }: { name: string }) => name === 'Orders');
    expect(imported.map(({ timeoutMs }: { timeoutMs: number }) => timeoutMs)).toEqual(timeouts);
  });
});

describe('the read-only fields of a route', () => {
  test('the read-only fields of a route are those that an import ignores', async () => {
    const key = await organization();
    const read = await world.create('routes', { name: 'Read', sourceId: 'shop', destinationIds: ['one'] }, key);
    const others = Object.keys(read).filter((field) => !(field in routeBody.shape) && field !== 'slug' && field !== 'sourceId');
    expect([...routeReadOnlyFields].sort()).toEqual(others.sort());
  });

  test.each(routeReadOnlyFields)('%s is ignored by an import', async (field) => {
    const key = await organization();
    const routes = [{ ...route('A', ['one']), [field]: 'of another' }];
    const answer = await importOf('routes', key, { routes, conflictStrategy: 'skip' });
    expect(answer).toMatchObject({ imported: 1, errors: [] });
    expect((await world.request('GET', `/api/routes/${answer.routes[0].id}`, { key })).body[field]).not.toBe('of another');
  });
});
