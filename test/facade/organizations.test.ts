import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const slugs = ['acme', ...Array.from({ length: 110 }, (_, i) => `org-${100 + i}`)];
let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld({ loopbackOrganization: 'acme' });
  for (const slug of slugs.slice(1)) await world.addOrganization(slug);
}, 180_000);
afterAll(() => world?.stop());

test('an API key sees its own organization and no other', async () => {
  const [key, id] = [await world.addKey('org-100', { role: 'viewer' }), await world.organizationId('org-100')];
  const { body } = await world.request('GET', '/api/organizations', { key });
  expect(body).toEqual({
    data: [{ id, name: 'org-100', slug: 'org-100', role: 'viewer' }],
    pagination: { hasMore: false, nextCursor: null },
  });
  expect((await world.request('GET', '/api/organizations?limit=1&cursor=x', { key })).status).toBe(400);
});

test('a client on the machine of standalone sees all organizations, at most 100 in an answer, and none that is retained', async () => {
  const id = await world.organizationId('org-105');
  await world.store.delete('Organization', { name: 'org-105' });
  await eventually(async () => {
    const record = await world.registry.get('organization', id);
    expect(record === null || record.retained !== undefined).toBe(true);
  });
  const page = async (query: string) =>
    (await world.request('GET', `/api/organizations${query}`, { key: null, headers: { 'sec-fetch-site': 'same-origin' } })).body;
  const seen: string[] = [];
  const sizes: number[] = [];
  for (let cursor = ''; ; ) {
    const { data, pagination } = await page(`?limit=100${cursor}`);
    seen.push(...data.map(({ slug }: { slug: string }) => slug));
    sizes.push(data.length);
    expect(data.every(({ role }: { role: string }) => role === 'admin')).toBe(true);
    if (!pagination.hasMore) break;
    cursor = `&cursor=${pagination.nextCursor}`;
  }
  expect(seen).toEqual(slugs.filter((slug) => slug !== 'org-105'));
  expect(Math.max(...sizes)).toBeLessThanOrEqual(100);
  expect((await page('?limit=1')).data).toEqual([{ id: await world.organizationId('acme'), name: 'acme', slug: 'acme', role: 'admin' }]);
});
