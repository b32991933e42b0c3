import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { delivered } from '../../support/queue-worker.ts';
import { newWebhookEvent } from '../../support/webhook-messages.ts';
import { type MessagesWorld, startMessagesWorld } from './messages-world.ts';

let world: MessagesWorld;
beforeAll(async () => {
  world = await startMessagesWorld();
  await world.clear();
});
afterAll(() => world.stop());

const read = (id: string, key?: string) => world.facade.request('GET', `/api/webhook-events/${id}`, { key });

test('an event shows what was sent, and its messages with what became of them', async () => {
  const endpoints = [await world.endpoint(), await world.endpoint()];
  const webhook = {
    labels: { country: 'at' },
    metadata: { by: { id: 7 } },
    idempotencyKey: 'order-17',
    applicationId: endpoints[0]?.applicationId ?? '',
    endpointIds: [endpoints[0]?.id ?? ''],
  };
  const event = newWebhookEvent(world.org, endpoints, {
    webhook,
    payload: Buffer.from('{ "total": 12.50, "by": 12345678901234567890, "by": 7 }'),
  });
  await world.facade.acceptor.accept(event);
  await world.end(delivered);
  const { status, text, body } = await read(event.id);
  expect(text).toContain('"payload":{ "total": 12.50, "by": 12345678901234567890, "by": 7 },');
  expect([status, body]).toEqual([
    200,
    {
      data: {
        id: event.id,
        organizationId: expect.stringMatching(/^org_/),
        eventType: 'order.paid',
        payload: { total: 12.5, by: 7 },
        ...webhook,
        deliverAt: null,
        endpointId: endpoints[0]?.id,
        createdAt: new Date(event.receivedAtMs).toISOString(),
        messageCount: 2,
        messages: event.targets.map(({ messageId, destinationId }) =>
          expect.objectContaining({
            id: messageId,
            eventId: event.id,
            endpointId: destinationId,
            status: 'success',
            labels: { country: 'at' },
          }),
        ),
        unreached: {
          total: 0,
          byReason: {},
          subscriptions: [],
          scanned: 1,
          isComplete: true,
        },
      },
    },
  ]);
});

test('an event without targets, key and labels has none', async () => {
  const event = newWebhookEvent(world.org, []);
  await world.facade.acceptor.accept(event);
  expect((await read(event.id)).body.data).toMatchObject({
    labels: {},
    metadata: {},
    idempotencyKey: null,
    applicationId: null,
    endpointId: null,
    endpointIds: [],
    messageCount: 0,
    messages: [],
  });
});

test('an event that is unknown, of a source, a part of another or of another organization is 404', async () => {
  const event = newWebhookEvent(world.org, []);
  const part = newWebhookEvent(world.org, [await world.endpoint()], { webhook: { partOf: event.id } });
  for (const each of [event, part]) await world.facade.acceptor.accept(each);
  await world.facade.addOrganization('other');
  const key = await world.facade.addKey('other');
  for (const [id, as] of [['evt_unknown'], [`evt_00${'a'.repeat(25)}`], [part.id], [event.id, key]]) {
    const { status, body } = await read(id ?? '', as);
    expect([status, body]).toEqual([404, { error: 'Not found', message: 'There is no such event.', details: {} }]);
  }
  expect((await read(event.id)).status).toBe(200);
});
