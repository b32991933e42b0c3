import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { WebhookEndpoint } from '../../../src/data/webhooks/webhooks.ts';
import { dead, delivered } from '../../support/queue-worker.ts';
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
        payloadEncoding: 'json',
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

test('events are listed newest first, by event type, application, status, time and payload', async () => {
  await world.clear();
  await world.store.deleteEventType(world.org, 'etp_order.paid', 'order.paid');
  const [one, two] = [await world.endpoint(), await world.endpoint()];
  const began = Date.now();
  const send = async (endpoints: readonly WebhookEndpoint[], changes: Parameters<typeof newWebhookEvent>[2]): Promise<string> => {
    const event = newWebhookEvent(world.org, endpoints, changes);
    await world.facade.acceptor.accept(event);
    return event.id;
  };
  const lost = await send([one], { payload: Buffer.from('{"n":1}') });
  await world.end(dead);
  const both = await send([one, two], { payload: Buffer.from('{"n":2}') });
  await world.end(delivered);
  const none = await send([], { payload: Buffer.from('{"n":3}') });
  const listed = async (query: string): Promise<string[]> => {
    const { body } = await world.facade.request('GET', `/api/webhook-events?${query}`);
    return body.data.map(({ id }: { id: string }) => id);
  };
  expect(await listed('')).toEqual([none, both, lost]);
  const { body } = await world.facade.request('GET', '/api/webhook-events?limit=1');
  const { payload: _payload, payloadEncoding: _encoding, messages: _messages, ...shown } = (await read(none)).body.data;
  const { unreached: _unreached, endpointId: _endpointId, ...item } = shown;
  expect(body).toEqual({ data: [item], pagination: { hasMore: true, nextCursor: expect.any(String), scanned: expect.any(Number) } });
  expect(await listed(`limit=1&cursor=${body.pagination.nextCursor}`)).toEqual([both]);
  expect(await listed(`applicationId=${two.applicationId}`)).toEqual([both]);
  expect(await listed(`applicationId=${one.applicationId},${two.applicationId}`)).toEqual([both, lost]);
  expect(await listed('status=dlq')).toEqual([lost]);
  expect(await listed(`id=${none},${lost},evt_none`)).toEqual([none, lost]);
  expect(await listed(`id=${none},${lost}&responseStatus=5xx`)).toEqual([lost]);
  expect(await listed(`endpointId=${one.id}`)).toEqual([both, lost]);
  expect(await listed(`endpointId=${two.id}&status=dlq`)).toEqual([]);
  expect(await listed('errorType=http_error&attemptsMin=1&failedFrom=1970-01-01')).toEqual([lost]);
  expect(await listed('responseStatus=2xx')).toEqual([both]);
  expect(await listed('attemptsMin=2')).toEqual([]);
  expect(await listed('status=dlq,success')).toEqual([both, lost]);
  expect(await listed('eventType=order.paid')).toEqual([none, both, lost]);
  expect(await listed(`where=${encodeURIComponent('event.data.n >= 2.0')}`)).toEqual([none, both]);
  expect(await listed(`to=${encodeURIComponent(new Date(began - 1).toISOString())}`)).toEqual([]);
  expect(await listed(`from=${encodeURIComponent(new Date(began).toISOString())}`)).toEqual([none, both, lost]);
  await send([one], {});
  expect(await listed(`limit=1&cursor=${body.pagination.nextCursor}`)).toEqual([both]);
  await world.facade.addOrganization('reader');
  const key = await world.facade.addKey('reader');
  const stranger = (query: string) => world.facade.request('GET', `/api/webhook-events?${query}`, { key });
  expect((await stranger('')).body.data).toEqual([]);
  expect((await stranger(`applicationId=${one.applicationId}`)).status).toBe(404);
  expect((await stranger(`endpointId=${one.id}`)).status).toBe(404);
  expect((await stranger(`id=${both}`)).body.data).toEqual([]);
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
