import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { webhookOrganization } from '../../../src/core/webhook.ts';
import { RedisMessageReader } from '../../../src/data/history/message-reader.ts';
import { eventually } from '../../support/eventually.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

const event = { eventType: 'order.paid', payload: {} };
let world: FacadeWorld;

beforeAll(async () => {
  world = await startFacadeWorld();
  const { body } = await world.request('POST', '/api/event-types', { body: { name: event.eventType } });
  await eventually(async () => expect(await world.registry.getOfAny('eventType', body.data.id)).not.toBeNull());
});
afterAll(() => world?.stop());

test('an event has the hops of the request; above 8 it is 403', async () => {
  const messages = new RedisMessageReader({ redis: world.redis.client, prefix: 'test:' });
  const org = webhookOrganization(await world.organizationId('acme'));
  const send = (headers: Record<string, string>) => world.request('POST', '/api/send-event', { body: event, headers });
  const hopsOf = async (headers: Record<string, string>) => (await messages.event(org, (await send(headers)).body.data.eventId))?.headers;
  expect(await hopsOf({ 'x-posthorn-hop': '8', 'x-other': '1' })).toEqual([['x-posthorn-hop', '8']]);
  expect(await hopsOf({})).toEqual([]);
  for (const hop of ['9', '-1', 'many']) {
    const headers = { 'x-posthorn-hop': hop };
    const refused = await send(headers);
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('x-posthorn-hop is ')]);
    const { body } = await world.request('POST', '/api/send-events', { body: { events: [event] }, headers });
    expect(body.data).toMatchObject([{ message: expect.stringContaining('x-posthorn-hop is ') }]);
  }
});
