import { expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { startReceiver } from '../support/receiver.ts';
import { startFacadeWorld } from './facade-world.ts';

test('deliveries carry the output of a shared transform, wait while it is not shared, and continue when it is again', async () => {
  const world = await startFacadeWorld();
  const receiver = await startReceiver();
  try {
    await world.startWorker();
    await world.addOrganization('globex');
    const key = await world.addKey('globex');
    const org = await world.organizationId('globex');
    const code = '{"id": payload.a, "by": "acme"}';
    await world.create('transforms', { name: 'Shared', slug: 'shared', code, sharedWith: ['globex'] });
    const share = (sharedWith: string[]) => world.request('PATCH', '/api/transforms/shared', { body: { sharedWith } });
    const transform = await world.create('transforms', { slug: 'mine', sharedFrom: { organization: 'acme', slug: 'shared' } }, key);
    const source = await world.create('sources', {}, key);
    const destination = await world.create('destinations', { url: receiver.url }, key);
    const route = await world.create('routes', { sourceId: source.id, destinationIds: [destination.id], transformId: transform.id }, key);
    const { shard } = (await world.registry.getOf(org, 'destination', destination.id)) ?? { shard: 0 };
    const send = async (payload: object) => {
      const event = newEvent({ org, sourceId: source.id, destinations: [destination.id], payload: Buffer.from(JSON.stringify(payload)) });
      await world.acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, routeId: route.id, shard })) });
      return event.targets[0]?.messageId ?? '';
    };
    const bodies = () => receiver.requests.map(({ body }) => body.toString());

    await send({ a: 1 });
    await receiver.arrived(1);
    await share([]);
    await eventually(async () => expect(await world.registry.getOf(org, 'transform', transform.id)).toBeNull());
    const waiting = await send({ a: 2 });
    await eventually(async () => {
      const { body } = await world.request('GET', `/api/deliveries/${waiting}`, { key });
      expect(body).toMatchObject({ status: 'pending', waitingFor: 'transform_missing' });
    });
    await share(['globex']);
    await receiver.arrived(2);
    expect(bodies()).toEqual(['{"id":1,"by":"acme"}', '{"id":2,"by":"acme"}']);
  } finally {
    await receiver.close();
    await world.stop();
  }
});
