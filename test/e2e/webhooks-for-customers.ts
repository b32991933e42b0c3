import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { startTlsReceiver, type TlsReceiver, type TlsReceiverOptions, type TlsRequest } from '../support/tls-receiver.ts';
import { verifies } from '../support/webhook-verification.ts';
import type { RestClient } from './rest.ts';

interface Setting {
  rest: RestClient;
  receivers: TlsReceiverOptions;
}

interface Endpoint {
  id: string;
  secret: string;
}

const deadlineMs = 30_000;

/** Webhooks for customers, in any installation, all through the API: an event is sent, delivered, signed, given up and sent again. */
export function describeWebhooksForCustomers(setting: () => Setting): void {
  describe('webhooks for customers', () => {
    const payload = '{ "total": 1.50, "id" : "o\\u002d17" }';
    let rest: RestClient;
    let customer: TlsReceiver;
    let leaving: TlsReceiver;
    let endpoint: Endpoint;
    let eventTypeId: string;
    let applicationId: string;

    const made = async (path: string, body: object) => {
      const answer = await rest.send('POST', `/api/${path}`, body);
      expect([path, answer.status]).toEqual([path, 201]);
      return answer.body.data;
    };
    const subscribed = async (url: string): Promise<Endpoint> => {
      const { id, secret } = await made('webhook-endpoints', { applicationId, url });
      await made('webhook-subscriptions', { endpointId: id, eventTypeId, labelFilters: { country: ['at', 'de'] } });
      return { id, secret };
    };
    const send = (more: object) => {
      const text = JSON.stringify({ eventType: 'order.paid', labels: { country: 'at' }, ...more });
      return rest.sendText('POST', '/api/send-event', `${text.slice(0, -1)},"payload":${payload}}`);
    };
    /** Sends an event to the endpoint alone; returns its request and the message that it is for. */
    const delivered = async (receiver: TlsReceiver, { id: endpointId }: Endpoint): Promise<{ eventId: string; request: TlsRequest }> => {
      const { status, body } = await send({ endpointId });
      expect([status, body.data?.messagesQueued]).toEqual([201, 1]);
      const { eventId } = body.data;
      const request = await eventually(`${eventId} to arrive`, deadlineMs, () =>
        receiver.requests.find(({ headers }) => headers['x-posthorn-event-id'] === eventId),
      );
      return { eventId, request };
    };
    const rotate = async (gracePeriodSeconds: number) =>
      (await rest.send('POST', `/api/webhook-endpoints/${endpoint.id}/rotate-secret`, { gracePeriodSeconds })).body;
    const shows = (id: string, expected: object) =>
      eventually(
        async () => expect((await rest.send('GET', `/api/outbound-messages/${id}`)).body.data).toMatchObject(expected),
        deadlineMs,
      );
    const idOf = ({ headers }: TlsRequest): string => String(headers['webhook-id']);

    beforeAll(async () => {
      const { receivers, rest: client } = setting();
      rest = client;
      customer = await startTlsReceiver(receivers);
      leaving = await startTlsReceiver({ ...receivers, respond: (_, number) => (number === 1 ? 410 : 200) });
      eventTypeId = (await made('event-types', { name: 'order.paid' })).id;
      const upsert = { externalId: 'customer-17', name: 'Acme Corporation' };
      const { status, body } = await rest.send('PUT', '/api/webhook-applications/upsert', upsert);
      expect([status, body.created]).toEqual([201, true]);
      applicationId = body.data.id;
      endpoint = await subscribed(customer.url('/hooks?from=posthorn'));
    });
    afterAll(async () => {
      await Promise.all([customer, leaving].map((receiver) => receiver?.stop()));
    });

    test('an event reaches who subscribes to it once, byte for byte, with a signature that verifies', async () => {
      const silent = await send({ labels: { country: 'fr' } });
      expect([silent.status, silent.body.data.messagesQueued]).toEqual([201, 0]);
      const order = { idempotencyKey: 'order-17-paid' };
      const first = await send(order);
      const again = await send(order);
      expect([first.status, again.status, again.body]).toEqual([201, 200, first.body]);
      const { eventId, messagesQueued, endpoints } = first.body.data;
      expect([messagesQueued, endpoints]).toEqual([1, [{ id: endpoint.id, url: customer.url('/hooks?from=posthorn') }]]);
      await customer.waitForRequests(1, deadlineMs);
      const [request] = customer.requests;
      if (request === undefined) throw new Error('nothing arrived');
      expect([request.method, request.path, request.body.toString()]).toEqual(['POST', '/hooks?from=posthorn', payload]);
      const named = { 'x-posthorn-event-id': eventId, 'x-posthorn-event-type': 'order.paid', 'x-posthorn-attempt': '1' };
      expect(request.headers).toMatchObject({ ...named, 'content-type': 'application/json' });
      expect(verifies(request, endpoint.secret)).toBe(true);
      await shows(idOf(request), { status: 'success', eventId, endpointId: endpoint.id, attempts: 1, lastResponseStatus: 200 });
      const next = await delivered(customer, endpoint);
      expect(customer.requests.map(({ headers }) => headers['x-posthorn-event-id'])).toEqual([eventId, next.eventId]);
    }, 120_000);

    test('webhooks for customers in the grace period of a rotation the old secret and the new one verify, after one without grace only the new one', async () => {
      const secrets = [endpoint.secret];
      const signedBy = async (secret: string): Promise<boolean[]> =>
        await eventually(async () => {
          const { request } = await delivered(customer, endpoint);
          expect(verifies(request, secret)).toBe(true);
          return secrets.map((each) => verifies(request, each));
        }, deadlineMs);
      const withGrace = await rotate(3600);
      expect(withGrace).toMatchObject({ secret: expect.any(String), previousSecretExpiresAt: expect.any(String), secretVersion: 2 });
      secrets.push(withGrace.secret);
      expect(await signedBy(withGrace.secret)).toEqual([true, true]);
      const atOnce = await rotate(0);
      expect(atOnce).toMatchObject({ secret: expect.any(String), previousSecretExpiresAt: null, secretVersion: 3 });
      secrets.push(atOnce.secret);
      expect(await signedBy(atOnce.secret)).toEqual([false, false, true]);
      endpoint.secret = atOnce.secret;
    }, 120_000);

    test('an endpoint that says it is gone is disabled; enabled again it gets its dead letter as a new message', async () => {
      const gone = await subscribed(leaving.url('/gone'));
      const { eventId, request } = await delivered(leaving, gone);
      const letter = { id: idOf(request), status: 'dlq', dlqReason: 'endpoint_not_found', lastErrorType: 'gone', lastResponseStatus: 410 };
      await eventually(async () => {
        const { body } = await rest.send('GET', `/api/outbound-messages/dlq/messages?endpointId=${gone.id}`);
        expect(body.data).toEqual([expect.objectContaining({ ...letter, eventId })]);
      }, deadlineMs);
      const path = `/api/webhook-endpoints/${gone.id}`;
      await eventually(async () => expect((await rest.send('GET', path)).body.data).toMatchObject({ isDisabled: true }), deadlineMs);
      expect((await rest.send('PATCH', path, { isDisabled: false })).status).toBe(200);
      const retried = await rest.send('POST', `/api/outbound-messages/dlq/${letter.id}/retry`);
      const { newMessageId } = retried.body.data;
      expect([retried.status, retried.body.data]).toEqual([201, { originalMessageId: letter.id, newMessageId, status: 'queued' }]);
      await leaving.waitForRequests(2, deadlineMs);
      const [, second] = leaving.requests;
      if (second === undefined) throw new Error('nothing arrived');
      expect([idOf(second), second.headers['x-posthorn-event-id'], second.body.toString()]).toEqual([newMessageId, eventId, payload]);
      expect(verifies(second, gone.secret)).toBe(true);
      await shows(newMessageId, { status: 'success', replayedFrom: letter.id });
      await shows(letter.id, { status: 'dlq', dlqRetryCount: 1 });
      expect((await rest.send('DELETE', `/api/outbound-messages/dlq/${letter.id}`)).status).toBe(200);
      await shows(letter.id, { status: 'exhausted' });
    }, 120_000);

    test('a delivered message is sent again when it is replayed, as a message of its own with the same bytes', async () => {
      const { eventId, request } = await delivered(customer, endpoint);
      await shows(idOf(request), { status: 'success' });
      const before = customer.requests.length;
      const { status, body } = await rest.send('POST', `/api/outbound-messages/${idOf(request)}/replay`);
      expect([status, body.data.status]).toEqual([201, 'queued']);
      await customer.waitForRequests(before + 1, deadlineMs);
      const replayed = customer.requests.at(-1);
      if (replayed === undefined) throw new Error('nothing arrived');
      expect([idOf(replayed), replayed.headers['x-posthorn-event-id']]).toEqual([body.data.newMessageId, eventId]);
      expect(replayed.body.equals(request.body)).toBe(true);
      expect(verifies(replayed, endpoint.secret)).toBe(true);
      await shows(body.data.newMessageId, { status: 'success', replayedFrom: idOf(request) });
    }, 120_000);
  });
}
