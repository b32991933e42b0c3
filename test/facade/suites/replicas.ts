import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** What other replicas see of a write, with any store behind the API. */
export function describeReplicas(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  let other: FacadeWorld['request'];
  beforeAll(async () => {
    world = await start();
    other = await world.startReplica();
  });
  afterAll(() => world.stop());

  const created = (name: string) => world.request('POST', '/api/destinations', { body: { name, url: 'https://hooks.example.com/in' } });

  test('a single read sees each answered write on every replica at once', async () => {
    for (let number = 0; number < 20; number++) {
      const { body: made } = await created(`Made ${number}`);
      expect((await other('GET', `/api/destinations/${made.id}`)).body).toEqual(made);
      const { body: changed } = await world.request('PATCH', `/api/destinations/${made.id}`, { body: { timeoutMs: 5000 + number } });
      expect((await other('GET', `/api/destinations/${made.slug}`)).body.timeoutMs).toBe(changed.timeoutMs);
      expect((await world.request('DELETE', `/api/destinations/${made.id}`)).status).toBe(204);
      expect((await other('GET', `/api/destinations/${made.id}`)).status).toBe(404);
    }
  });

  test('a list sees an answered write at once where it was answered, and elsewhere soon', async () => {
    const named = async (request: FacadeWorld['request'], name: string) =>
      (await request('GET', `/api/destinations?search=${name}`)).body.data.length;
    await created('Listed');
    expect(await named(world.request, 'Listed')).toBe(1);
    await eventually(async () => expect(await named(other, 'Listed')).toBe(1));
  });
}
