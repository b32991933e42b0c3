import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { FacadeWorld } from '../facade-world.ts';

/** When a deletion returns, with any store behind the API. */
export function describeDeletions(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  test('a deletion is answered when ingest and delivery read nothing of it any more', async () => {
    const url = 'https://hooks.example.com/in';
    const source = await world.create('sources');
    const destination = await world.create('destinations', { url });
    const route = await world.create('routes', { sourceId: source.id, destinationIds: [destination.id] });
    const made = [
      ['routes', 'route', route.id],
      ['sources', 'source', source.id],
      ['destinations', 'destination', destination.id],
      ['transforms', 'transform', (await world.create('transforms', { code: 'payload' })).id],
      ['schemas', 'payloadSchema', (await world.create('schemas', { jsonSchema: '{}' })).id],
      [
        'notification-channels',
        'notificationChannel',
        (await world.create('notification-channels', { type: 'email', config: { addresses: ['team@example.com'] } })).id,
      ],
      ['cron', 'cronJob', (await world.create('cron', { cronExpression: '0 6 * * *', url })).cronJob.id],
      ['api-keys', 'apiKey', (await world.create('api-keys')).apiKey.id],
    ];
    for (const [path, kind, id] of made) {
      expect([path, await world.redis.client.hexists(`test:{cfg}:rec:${kind}`, id)]).toEqual([path, 1]);
      const { status, headers } = await world.request('DELETE', `/api/${path}/${id}`);
      expect([path, status < 300, headers.get('warning')]).toEqual([path, true, null]);
      expect([path, await world.redis.client.hexists(`test:{cfg}:rec:${kind}`, id)]).toEqual([path, 0]);
    }
  });
}
