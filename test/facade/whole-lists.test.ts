import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const families = {
  cron: {
    list: 'cronJobs',
    body: { cronExpression: '0 0 1 1 *', url: 'https://reports.example.com/' },
  },
  'notification-channels': {
    list: 'data',
    body: { type: 'email', config: { addresses: ['ops@example.com'] } },
  },
};
const count = 25;
let world: FacadeWorld;

beforeAll(async () => {
  world = await startFacadeWorld();
  // Some share their name.
  for (const [family, { body }] of Object.entries(families))
    for (let n = 0; n < count; n++) {
      const { status } = await world.request('POST', `/api/${family}`, { body: { name: `Made ${n % 20}`, ...body } });
      expect([family, status]).toEqual([family, 201]);
    }
});
afterAll(() => world.stop());

describe.each(Object.entries(families))('the list of %s', (family, { list }) => {
  const get = async (query: string): Promise<{ id: string }[]> => {
    const { status, body } = await world.request('GET', `/api/${family}${query}`);
    expect([query, status, Object.keys(body)]).toEqual([query, 200, [list]]);
    return body[list];
  };

  test('is one answer without page and pageSize', async () => {
    expect(await get('')).toHaveLength(count);
  });

  test.each<[string, [from: number, to: number]]>([
    ['?page=1', [0, 20]],
    ['?page=2', [20, 25]],
    ['?page=3', [25, 25]],
    ['?pageSize=7', [0, 7]],
    ['?page=2&pageSize=7', [7, 14]],
    ['?page=4&pageSize=7', [21, 25]],
    ['?page=1&pageSize=100', [0, 25]],
    ['?page=1000000', [25, 25]],
  ])('of %s is a part of it', async (query, [from, to]) => {
    expect(await get(query)).toEqual((await get('')).slice(from, to));
  });

  test('is read page by page until one is empty, each record once', async () => {
    const ids: string[] = [];
    for (let page = 1; ; page++) {
      const records = await get(`?page=${page}&pageSize=10`);
      if (records.length === 0) break;
      ids.push(...records.map(({ id }) => id));
    }
    expect([ids.length, new Set(ids).size]).toEqual([count, count]);
  });

  test.each(['?page=0', '?pageSize=0', '?pageSize=101', '?page=-1', '?page=x'])('is refused with %s', async (query) => {
    expect((await world.request('GET', `/api/${family}${query}`)).status).toBe(400);
  });
});
