import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { newTimedId } from '../../src/core/ids.ts';
import type { AttemptDetail } from '../../src/data/shard/attempt-detail.ts';
import { emptiedQueue } from '../support/emptied-queue.ts';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { failure, settleAll, takeFrom } from '../support/queue-worker.ts';
import { startReceiver } from '../support/receiver.ts';
import { newWebhookEvent } from '../support/webhook-messages.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let org: string;
beforeAll(async () => {
  world = await startFacadeWorld();
  org = await world.organizationId('acme');
});
afterAll(() => world.stop());
beforeEach(() => emptiedQueue(world));

const storyOf = async (id: string): Promise<{ what: string; text: string; data: object }[]> =>
  (await world.request('GET', `/api/explain/${id}`)).body.story;
const stepOf = async (id: string, what: string) => (await storyOf(id)).find((step) => step.what === what);

test('a message to an endpoint shows which headers of its target were sent, and until it has ended what the next attempt sends', async () => {
  const queue = await emptiedQueue(world);
  const { id: applicationId } = (await world.create('webhook-applications')).data;
  const settings = {
    applicationId,
    url: 'https://customer.example/',
    headers: [{ name: 'X-Env', value: 'test' }],
    headerTemplates: [{ name: 'X-Order', template: '{{ payload.id }}' }],
  };
  const endpoint = (await world.request('POST', '/api/webhook-endpoints', { body: settings })).body.data;
  const event = newWebhookEvent(org, [endpoint]);
  await world.acceptor.accept(event);
  const id = event.targets[0]?.messageId ?? '';
  const told = 'By the settings of its target the next attempt has the static header X-Env and the templated header X-Order.';
  expect(await stepOf(id, 'settings')).toMatchObject({ text: told });
  const detail: AttemptDetail = {
    requestHeaders: [['x-env', 'test']],
    responseHeaders: null,
    isTruncated: false,
    peerAddress: null,
    reusedConnection: false,
    requestBytes: 2,
    responseBytes: 0,
    phases: { dnsMs: 0, connectMs: 0, tlsMs: 0, firstByteMs: 0, totalMs: 0 },
  };
  const attempt = { ...failure, startedAtMs: Date.now(), detail };
  await settleAll(queue, 'w1', await takeFrom(queue, 'w1', 1), { type: 'dead', attempt, reason: 'max_retries_exceeded' });
  expect(await stepOf(id, 'attempt')).toMatchObject({
    text: expect.stringMatching(/signed with hmac-sha256\. Of the headers that its target sets now it had X-Env\.$/),
    data: { ownHeaders: ['X-Env'] },
  });
  expect(await stepOf(id, 'settings')).toBeUndefined();
});

test('a message of a target without headers of its own shows nothing of them', async () => {
  const destination = await world.create('destinations', { url: 'https://hooks.example.com/in' });
  const event = newEvent({ org, destinations: [destination.id] });
  await world.acceptor.accept(event);
  expect((await storyOf(event.targets[0]?.messageId ?? '')).map(({ what }) => what)).toEqual(['received', 'verified', 'matched']);
});

test('a delivery shows which headers of its destination were sent, and what the next attempt sends', async () => {
  const to = await startReceiver((response) => response.writeHead(500).end());
  try {
    const headerTemplates = { 'X-Order': 'no {{ payload.id }}' };
    // The step `settings` is there while a retry is to come.
    const retryPolicy = { initialDelay: 3_600_000, maxDelay: 3_600_000 };
    const settings = { url: to.url, headers: { 'X-Env': 'test', 'X-Team': 'a' }, headerTemplates, retryPolicy };
    const destination = await world.create('destinations', settings);
    const source = await world.create('sources');
    const route = await world.create('routes', { sourceId: source.id, destinationIds: [destination.id] });
    await eventually(async () => expect(await world.registry.getOfAny('route', route.id)).not.toBeNull());
    await world.startWorker();
    const messageId = newTimedId('msg_', 0, Date.now());
    const target = { messageId, routeId: route.id, destinationId: destination.id, shard: 0, maxAttempts: 5 };
    await world.acceptor.accept(newEvent({ org, payload: Buffer.from('{"id":7}'), targets: [target] }));
    const [request] = await to.arrived(1);
    expect(request?.headers).toMatchObject({ 'x-env': 'test', 'x-team': 'a', 'x-order': 'no 7' });
    await eventually(async () =>
      expect(await stepOf(messageId, 'attempt')).toMatchObject({
        text: expect.stringMatching(
          /Its body is the payload, unsigned\. Of the headers that its target sets now it had X-Env, X-Team and X-Order\.$/,
        ),
        data: { ownHeaders: ['X-Env', 'X-Team', 'X-Order'] },
      }),
    );
    await world.request('PATCH', `/api/destinations/${destination.id}`, { body: { headers: { 'X-New': 'b' }, payloadForm: 'thin' } });
    await eventually(async () =>
      expect(await stepOf(messageId, 'settings')).toMatchObject({
        at: null,
        text: 'By the settings of its target the next attempt has a link to the payload as its body, the static header X-New and the templated header X-Order.',
        data: {
          payloadForm: 'thin',
          staticHeaders: ['X-New'],
          headerTemplates: [{ name: 'X-Order', template: 'no {{ payload.id }}' }],
        },
      }),
    );
    // What was sent is not what the settings are now.
    expect(await stepOf(messageId, 'attempt')).toMatchObject({ data: { payloadForm: 'full', ownHeaders: ['X-Order'] } });
  } finally {
    await to.close();
  }
});
