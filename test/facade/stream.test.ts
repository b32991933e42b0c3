import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { startReceiver } from '../support/receiver.ts';
import { SeenEvents } from '../support/stream-clients.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';
import { subscribe } from './subscribed.ts';

let world: FacadeWorld;
const open: ClientRequest[] = [];
beforeAll(async () => {
  world = await startFacadeWorld();
  await world.startWorker();
  await world.addOrganization('globex');
});
afterAll(() => world?.stop());
afterEach(() => {
  for (const each of open.splice(0)) each.destroy();
});

interface Followed {
  answer: IncomingMessage;
  seen: SeenEvents;
}

async function follow(
  query = '',
  { key = world.admin, headers = {} }: { key?: string; headers?: Record<string, string> } = {},
): Promise<Followed> {
  const sent = request(`${world.baseUrl}/api/stream?${query}`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
    agent: false,
  }).end();
  sent.on('error', () => {});
  open.push(sent);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const seen = new SeenEvents();
  answer
    .setEncoding('utf8')
    .on('data', (text: string) => seen.add(text))
    .on('error', () => {});
  expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8']);
  return { answer, seen };
}

const got = ({ seen }: Followed, types: string[]) =>
  eventually(types.join(), 30_000, () => types.every((type) => seen.types().includes(type)) || undefined);

async function routeTo(
  url: string,
  settings: object = {},
): Promise<{ source: { id: string; slug: string }; route: { id: string }; destination: { id: string; name: string } }> {
  const source = await world.create('sources', {});
  const destination = await world.create('destinations', { url, ...settings });
  const route = await world.create('routes', { sourceId: source.id, destinationIds: [destination.id] });
  return { source, route, destination };
}

async function send(
  { source, route, destination }: Awaited<ReturnType<typeof routeTo>>,
  maxAttempts = 3,
): Promise<ReturnType<typeof newEvent>> {
  const org = await world.organizationId('acme');
  const { shard } = (await world.registry.getOf(org, 'destination', destination.id)) ?? { shard: 0 };
  const event = newEvent({ org, sourceId: source.id, destinations: [destination.id], maxAttempts });
  const sent = { ...event, targets: event.targets.map((target) => ({ ...target, routeId: route.id, shard })) };
  await world.acceptor.accept(sent);
  return sent;
}

test('an event and its delivery are rows with their ids, names and answer, in a stream that no proxy keeps back', async () => {
  const receiver = await startReceiver();
  const made = await routeTo(receiver.url);
  const followed = await follow();
  expect(followed.answer.headers).toMatchObject({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
  const { id: eventId, targets } = await send(made);
  await got(followed, ['event.received', 'delivery.delivered']);
  await receiver.close();
  const [received, delivered] = followed.seen.all.map(({ data }) => data);
  expect(received).toMatchObject({ topic: 'events', status: 'pending', eventId, sourceId: made.source.id, routeId: null });
  expect(delivered).toMatchObject({
    topic: 'deliveries',
    status: 'delivered',
    id: targets[0]?.messageId,
    eventId,
    organizationId: await world.organizationId('acme'),
    sourceId: made.source.id,
    routeId: made.route.id,
    destinationId: made.destination.id,
    destinationName: made.destination.name,
    attempt: 1,
    responseStatus: 200,
    errorType: null,
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
  });
});

test('a stream has the topics, ids and statuses that were requested', async () => {
  const receiver = await startReceiver();
  const [one, other] = [await routeTo(receiver.url), await routeTo(receiver.url)];
  const all = await follow();
  const streams = await Promise.all([
    follow('topics=events'),
    follow(`sourceId=${one.source.slug}`),
    follow(`routeId=${one.route.id}`),
    follow(`destinationId=${other.destination.id}&topics=deliveries,circuits`),
    follow('status=delivered,dlq'),
    follow('topics=messages'),
    follow('status=dlq&status=delivered'),
    follow(`routeId=${one.route.id},${other.route.id}&topics=deliveries`),
    follow('responseStatus=404,2xx'),
    follow('responseStatus=5xx'),
    follow('errorType=http_error&errorType=timeout'),
  ]);
  await Promise.all([send(one), send(other)]);
  await eventually('all rows', 30_000, () => all.seen.all.length === 4 || undefined);
  await receiver.close();
  await eventually(
    'the rows of each',
    30_000,
    () => [2, 2, 1, 1, 2, 0, 2, 2, 2, 0, 0].every((count, i) => streams[i]?.seen.all.length === count) || undefined,
  );
  const routes = streams.map(({ seen }) => [...new Set(seen.all.map(({ data }) => data['routeId']))]);
  expect(streams[0]?.seen.types()).toEqual(['event.received', 'event.received']);
  expect([...(routes[2] ?? []), ...(routes[3] ?? [])]).toEqual([one.route.id, other.route.id]);
});

test('messages to webhook endpoints have their application, endpoint and event type, by which a stream is narrowed', async () => {
  await subscribe(world, 'order.paid', [null]);
  await subscribe(world, 'order.lost', [null]);
  const followed = await follow('eventType=order.paid');
  for (const eventType of ['order.lost', 'order.paid'])
    expect((await world.request('POST', '/api/send-event', { body: { eventType, payload: { id: 'o-1' } } })).status).toBe(201);
  await eventually('two rows', 30_000, () => followed.seen.all.length >= 2 || undefined);
  const [event, message] = followed.seen.all.map(({ data }) => data);
  expect(event).toMatchObject({ type: 'event.received', eventType: 'order.paid', sourceId: null });
  expect(message).toMatchObject({
    topic: 'messages',
    eventType: 'order.paid',
    applicationId: expect.stringMatching(/^app_/),
    endpointId: expect.any(String),
    routeId: null,
    destinationId: null,
  });
  expect(followed.seen.all.every(({ data }) => data['eventType'] === 'order.paid')).toBe(true);
});

test('a failing receiver shows as a retry with its answer', async () => {
  const receiver = await startReceiver((response) => response.writeHead(503).end());
  // No further attempt shows in the streams of other tests.
  const made = await routeTo(receiver.url, { retryPolicy: { initialDelay: 3_600_000, maxDelay: 3_600_000 } });
  const followed = await follow(`routeId=${made.route.id}`);
  const [failed, others] = [
    await follow('responseStatus=5xx&errorType=timeout,http_error'),
    await follow('responseStatus=5xx&errorType=dns'),
  ];
  await send(made);
  await got(followed, ['delivery.retrying']);
  await got(failed, ['delivery.retrying']);
  await receiver.close();
  expect([failed.seen.types(), others.seen.types()].map((types) => types.includes('delivery.retrying'))).toEqual([true, false]);
  expect(followed.seen.all.find(({ type }) => type === 'delivery.retrying')?.data).toMatchObject({
    status: 'retrying',
    responseStatus: 503,
    errorType: 'http_error',
    attempt: 1,
  });
});

test('a replay has rows of its phases with its name and counts, by which a stream is narrowed; no other organization sees them', async () => {
  let status = 503;
  const receiver = await startReceiver((response) => response.writeHead(status).end());
  const made = await routeTo(receiver.url, { retryPolicy: { maxRetries: 0 } });
  const failing = await follow(`routeId=${made.route.id}&topics=deliveries`);
  for (let i = 0; i < 2; i++) await send(made, 1);
  await eventually('two dead letters', 30_000, () => failing.seen.all.length === 2 || undefined);
  status = 200;
  const key = await world.addKey('globex');
  const viewer = await world.addKey('acme', { role: 'viewer' });
  const filter = { what: 'deliveries', filter: { routeId: made.route.id } };
  const replay = await world.create('replays', { name: 'night', suspend: true, ...filter });
  const [all, foreign, own, ended, ofRoute, other] = await Promise.all([
    follow('topics=replays', { key: viewer }),
    follow('', { key }),
    follow('replayId=night'),
    follow('status=succeeded'),
    follow(`routeId=${made.route.id}&topics=replays`),
    follow(`replayId=${(await world.create('replays', { name: 'other', dryRun: true, suspend: true, ...filter })).id}`),
  ]);
  expect((await world.request('PATCH', '/api/replays/night', { body: { suspend: false } })).status).toBe(200);
  await got(all, ['replay.succeeded']);
  await got(own, ['replay.succeeded']);
  await got(ended, ['replay.succeeded']);
  await receiver.close();
  const phases = all.seen.types().filter((type, i, types) => type !== types[i - 1]);
  expect(phases).toEqual(['replay.planning', 'replay.running', 'replay.succeeded']);
  const { body: shown } = await world.request('GET', '/api/replays/night');
  const last = all.seen.all.at(-1);
  expect(last?.data).toMatchObject({
    topic: 'replays',
    status: 'succeeded',
    id: replay.id,
    organizationId: await world.organizationId('acme'),
    routeId: null,
    eventId: null,
    reason: null,
    replay: {
      name: 'night',
      phase: shown.phase,
      candidates: 2,
      queued: shown.queued,
      skipped: 0,
      delivered: 2,
      failed: 0,
      endedOtherwise: 0,
    },
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
  });
  expect(shown).toMatchObject({ phase: 'Succeeded', queued: 2 });
  expect(own.seen.all.map(({ data }) => data)).toEqual(all.seen.all.map(({ data }) => data));
  expect(ended.seen.types()).toEqual(['replay.succeeded']);
  expect([foreign, ofRoute, other].map(({ seen }) => seen.all)).toEqual([[], [], []]);
  expect((await world.request('GET', `/api/stream?replayId=${replay.id}`, { key })).status).toBe(404);
  const resumed = await follow('topics=replays', { headers: { 'last-event-id': all.seen.all[0]?.id ?? '' } });
  await got(resumed, ['replay.succeeded']);
  expect(resumed.seen.all.map(({ data }) => data)).toEqual(all.seen.all.slice(1).map(({ data }) => data));
});

test('another organization sees nothing of it, and is refused what is not its own', async () => {
  const key = await world.addKey('globex');
  const receiver = await startReceiver();
  const made = await routeTo(receiver.url);
  const [own, foreign] = [await follow(), await follow('', { key })];
  await send(made);
  await got(own, ['event.received', 'delivery.delivered']);
  await receiver.close();
  expect(foreign.seen.all).toEqual([]);
  expect((await world.request('GET', `/api/stream?routeId=${made.route.id}`, { key })).status).toBe(404);
});

test('a client that resumes gets the rows of its organization only, also with the position of another one', async () => {
  const key = await world.addKey('globex');
  const org = await world.organizationId('globex');
  const receiver = await startReceiver();
  const made = await routeTo(receiver.url);
  const [own, foreign] = [await follow(), await follow('', { key })];
  await send(made);
  await got(own, ['event.received', 'delivery.delivered']);
  for (const { answer } of [own, foreign]) answer.destroy();
  const missed = await send(made);
  const foreignMissed = newEvent({ org, destinations: [] });
  await world.acceptor.accept(foreignMissed);
  const resumed = await Promise.all([
    follow('', { headers: { 'last-event-id': own.seen.lastId } }),
    follow('', { key, headers: { 'last-event-id': foreign.seen.lastId } }),
    follow('', { key, headers: { 'last-event-id': own.seen.lastId } }),
  ]);
  const [ownLast, foreignLast] = [await send(made), newEvent({ org, destinations: [] })];
  await world.acceptor.accept(foreignLast);
  const eventsOf = ({ seen }: Followed) => [...new Set(seen.all.map(({ data }) => data['eventId']))];
  await eventually('all rows', 30_000, () => resumed.every((each) => eventsOf(each).length >= 2) || undefined);
  await got(resumed[0], ['delivery.delivered']);
  await receiver.close();
  expect(resumed.map(eventsOf)).toEqual([
    [missed.id, ownLast.id],
    [foreignMissed.id, foreignLast.id],
    [foreignMissed.id, foreignLast.id],
  ]);
});

test('a client resumes with Last-Event-ID', async () => {
  const receiver = await startReceiver();
  const made = await routeTo(receiver.url);
  const first = await follow('topics=events');
  await send(made);
  await got(first, ['event.received']);
  first.answer.destroy();
  const missed = await send(made);
  const second = await follow('topics=events', { headers: { 'last-event-id': first.seen.lastId } });
  await got(second, ['event.received']);
  await receiver.close();
  expect(second.seen.all.map(({ data }) => data['eventId'])).toEqual([missed.id]);
});

test.each([
  ...[
    'responseStatus=6xx',
    'responseStatus=',
    'errorType=broken',
    'routeId=',
    `sourceId=${Array.from({ length: 11 }, (_, i) => i).join(',')}`,
  ],
  ...['topics=replay', 'status=lost', 'status=Running', 'topics=', 'topic=events'],
  ...['routeId=rte_a&applicationId=app_a', 'sourceId=src_a&eventType=order.paid', 'destinationId=dst_a&endpointId=ep_a'],
  ...['routeId=rte_a&replayId=rep_a', 'eventType=order.paid&replayId=rep_a'],
])('a stream is refused with %s', async (query) => {
  const { status, headers } = await world.request('GET', `/api/stream?${query}`);
  expect([status, headers.get('x-error-code')]).toEqual([400, 'INVALID_QUERY']);
});

test('HEAD of the stream ends at once, and its place is free', async () => {
  for (let i = 0; i < 25; i++) {
    const { status, text } = await world.request('HEAD', '/api/stream');
    expect([status, text]).toEqual([200, '']);
  }
});

test('a key has 20 streams, and another key of the organization, and lists, beside them', async () => {
  const streams: Followed[] = [];
  await eventually('the places of clients that have gone', 30_000, async () => {
    for (; streams.length < 20; ) streams.push(await follow());
    return true;
  });
  const refused = await world.request('GET', '/api/stream');
  expect([refused.status, refused.headers.get('x-error-code')]).toEqual([429, 'RATE_LIMITED']);
  expect((await world.request('GET', '/api/events')).status).toBe(200);
  const key = await world.addKey('acme');
  expect((await world.request('HEAD', '/api/stream', { key })).status).toBe(200);
});
