import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newTimedId } from '../../src/core/ids.ts';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';
import { describeReplayRefusals } from './suites/replay-refusals.ts';
import { describeReplays } from './suites/replays.ts';

describeReplays(() => startFacadeWorld());
describe('the refusal of a replay', () => describeReplayRefusals(() => startFacadeWorld()));

describe('the progress of a replay', () => {
  let world: FacadeWorld;
  let receiver: Receiver;
  let isDown = true;
  let number = 0;
  beforeAll(async () => {
    world = await startFacadeWorld();
    receiver = await startReceiver((response) => {
      response.statusCode = isDown ? 500 : 200;
      response.end();
    });
    await world.startWorker();
  });
  afterAll(async () => {
    await world.stop();
    await receiver.close();
  });

  const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const replays = (method: string, path = '', body?: object) => world.request(method, `/api/replays${path}`, { body });
  const read = async (id: string) => (await replays('GET', `/${id}`)).body;
  const explain = async (id: string) => (await world.request('GET', `/api/explain/${id}`)).body;

  /** A route to the receiver with so many dead letters. */
  async function routeWithDeadLetters(count: number) {
    isDown = true;
    const source = await world.create('sources');
    const destination = await world.create('destinations', { url: receiver.url, retryPolicy: { maxRetries: 0 } });
    const route = await world.create('routes', { sourceId: source.id, destinationIds: [destination.id] });
    const org = await world.organizationId('acme');
    for (let i = 0; i < count; i++) {
      const target = {
        messageId: newTimedId('msg_', 0, Date.now()),
        routeId: route.id,
        destinationId: destination.id,
        shard: 0,
        maxAttempts: 1,
      };
      await world.acceptor.accept(newEvent({ org, sourceId: source.id, targets: [target] }));
    }
    await eventually(async () => {
      const { body } = await world.request('GET', `/api/deliveries?routeId=${route.id}&status=dlq`);
      expect(body.data).toHaveLength(count);
    });
    isDown = false;
    return { route, destination };
  }

  async function create(body: object) {
    const created = await replays('POST', '', { name: `progress-${++number}`, what: 'deliveries', ...body });
    expect(created.status).toBe(201);
    return created.body;
  }

  test('a dry run shows the plan, and a replay how far it is, until all that it has queued is delivered', async () => {
    const { route } = await routeWithDeadLetters(3);
    const filter = { routeId: route.id };
    const { id: dry } = await create({ filter, dryRun: true, ratePerSecond: 2 });
    await eventually(async () => expect((await read(dry)).phase).toBe('Succeeded'));
    const plan = { candidates: 3, isEstimate: false, bytes: 21, targets: 1, oldest: iso };
    expect(await read(dry)).toMatchObject({ plan: { ...plan, estimatedSeconds: 2 }, queued: 0, startedAt: iso, completedAt: iso });
    expect((await explain(dry)).summary).toMatch(/" has succeeded\. It is a dry run, which sends nothing; it has found 3 originals\.$/);

    const { id } = await create({ filter });
    await eventually(async () => expect((await read(id)).phase).toBe('Succeeded'));
    expect(await read(id)).toMatchObject({
      plan: { ...plan, estimatedSeconds: 1 },
      queued: 3,
      skipped: 0,
      skippedByReason: {},
      delivered: 3,
      failed: 0,
      endedOtherwise: 0,
      waiting: null,
      failure: null,
      alreadyRan: false,
      startedAt: iso,
      completedAt: iso,
      estimatedCompletionAt: null,
    });
    const { body } = await world.request('GET', `/api/deliveries?routeId=${route.id}&status=delivered`);
    expect(body.data.map(({ replayedFrom }: { replayedFrom: string }) => replayedFrom)).toHaveLength(3);
    expect(await explain(id)).toMatchObject({ state: 'Succeeded', waitsFor: null, advice: [] });
    expect((await replays('GET', '?phase=Succeeded')).body.data.map((each: { id: string }) => each.id).sort()).toEqual([dry, id].sort());
  });

  test('a replay that ran before under this name is not run again, and reports it', async () => {
    const { route } = await routeWithDeadLetters(1);
    const body = { name: 'twice', what: 'deliveries', filter: { routeId: route.id } };
    const first = (await replays('POST', '', body)).body;
    await eventually(async () => expect((await read(first.id)).phase).toBe('Succeeded'));
    expect((await replays('DELETE', '/twice')).status).toBe(204);
    const second = (await replays('POST', '', body)).body;
    expect(second).toMatchObject({ phase: 'Succeeded', queued: 1, delivered: 1, alreadyRan: true });
    expect(second.id).not.toBe(first.id);
    const { advice, story } = await explain(second.id);
    expect(advice).toEqual([{ text: 'Create a replay under another name to send them once more.' }]);
    expect(story).toContainEqual(expect.objectContaining({ what: 'already_ran' }));
  });

  test('a replay to another destination sends all there, which no route names', async () => {
    const { route } = await routeWithDeadLetters(2);
    const other = await world.create('destinations', { url: receiver.url });
    const { id } = await create({ filter: { routeId: route.id }, toDestinationId: other.id });
    await eventually(async () =>
      expect(await read(id)).toMatchObject({ phase: 'Succeeded', toDestinationId: other.id, queued: 2, delivered: 2 }),
    );
    const { body } = await world.request('GET', `/api/deliveries?destinationId=${other.id}`);
    const sent = body.data.map(({ routeId, status }: { routeId: string; status: string }) => `${routeId} ${status}`);
    expect(sent).toEqual([`${route.id} delivered`, `${route.id} delivered`]);
  });

  test('events that reached no route are sent by the routes of today, each once; what these still do not take stays', async () => {
    isDown = false;
    const source = await world.create('sources');
    const destination = await world.create('destinations', { url: receiver.url });
    const org = await world.organizationId('acme');
    const slug = (await world.request('GET', `/api/sources/${source.id}`)).body.slug;
    const large = { amount: 40, text: 'x'.repeat(2 * 1024 * 1024) };
    const bodies = [{ amount: 10 }, { amount: 20 }, { amount: 30 }, large].map((body) => Buffer.from(JSON.stringify(body)));
    const unreached = bodies.map((payload) =>
      newEvent({
        org,
        sourceId: source.id,
        sourceSlug: slug,
        receivedAtMs: Date.now() - 1000,
        id: newTimedId('evt_', 0, Date.now() - 1000),
        payload,
        targets: [],
      }),
    );
    for (const event of unreached) await world.acceptor.accept(event);
    const other = await world.create('destinations', { url: receiver.url });
    const filterConditions = [{ field: 'payload.amount', operator: 'gte', value: 20 }];
    const route = await world.create('routes', { sourceId: source.id, destinationIds: [destination.id], filterConditions });
    const elsewhere = await world.create('routes', { sourceId: source.id, destinationIds: [other.id], filterConditions });
    const before = receiver.requests.length;

    const selected = { sourceId: source.id, routeId: route.id, where: 'event.data.amount < 30' };
    const { id: dry } = await create({ what: 'events', filter: selected, dryRun: true });
    await eventually(async () => expect((await read(dry)).phase).toBe('Succeeded'));
    expect((await read(dry)).plan).toMatchObject({ candidates: 1, bytes: 13, targets: 1 });
    expect(receiver.requests).toHaveLength(before);

    await world.request('PATCH', `/api/routes/${elsewhere.id}`, { body: { isActive: false } });
    const { id } = await create({ what: 'events', filter: { sourceId: source.id, routeId: route.id } });
    await eventually(async () => expect((await read(id)).phase).toBe('Succeeded'));
    expect(await read(id)).toMatchObject({ plan: { candidates: 3, targets: 1 }, queued: 3, delivered: 3, skipped: 0 });
    const sent = receiver.requests.slice(before).map(({ body }) => body);
    expect(sent.map((body) => body.length).sort()).toEqual(
      bodies
        .slice(1)
        .map((body) => body.length)
        .sort(),
    );
    expect(sent.some((body) => Buffer.from(body).equals(bodies[3] ?? Buffer.alloc(0)))).toBe(true);
    const { body: listed } = await world.request('GET', `/api/events?sourceId=${source.id}&status=delivered`);
    expect(listed.data.map(({ duplicateOf }: { duplicateOf: string }) => duplicateOf).sort()).toEqual(
      unreached
        .slice(1)
        .map((event) => event.id)
        .sort(),
    );
    expect((await world.request('GET', `/api/events?sourceId=${source.id}&status=no_routes`)).body.data).toHaveLength(4);

    const { id: waits } = await create({ what: 'events', filter: { sourceId: source.id, routeId: elsewhere.id } });
    const message = `${other.id} or ${elsewhere.id} is disabled or not in force.`;
    await eventually(async () => expect((await read(waits)).waiting).toMatchObject({ reason: 'TargetDisabled', message }));
    await world.request('PATCH', `/api/routes/${elsewhere.id}`, { body: { isActive: true } });
    await eventually(async () => expect(await read(waits)).toMatchObject({ phase: 'Succeeded', queued: 3, delivered: 3 }));
  });

  test('a replay that waits says why, and how that ends; it is cancelled while it waits', async () => {
    const { route, destination } = await routeWithDeadLetters(2);
    await world.request('PATCH', `/api/destinations/${destination.id}`, { body: { isActive: false } });
    await eventually(async () => expect(await world.redis.client.scard('test:{s0}:paused')).toBe(1));
    const filter = { routeId: route.id, destinationId: destination.id };
    const [going, cancelled] = [await create({ filter }), await create({ filter, ratePerSecond: 1 })];
    const waiting = { reason: 'TargetDisabled', message: `${destination.id} or ${route.id} is disabled or not in force.`, since: iso };
    for (const { id } of [going, cancelled])
      await eventually(async () => expect(await read(id)).toMatchObject({ phase: 'Running', waiting, queued: 0 }));
    const { waitsFor, advice } = await explain(going.id);
    expect(waitsFor).toEqual({ reason: 'TargetDisabled', until: null, text: waiting.message });
    expect(advice.map(({ text }: { text: string }) => text)).toEqual([
      'Enable the destination.',
      'Suspend the replay.',
      'Cancel the replay; what is queued is delivered all the same.',
    ]);
    expect(advice[0].command).toContain(`-X PATCH "$URL/api/destinations/${destination.id}"`);

    expect((await replays('PATCH', `/${cancelled.id}`, { cancel: true })).body).toMatchObject({ phase: 'Cancelled', waiting: null });
    await eventually(async () => expect(await read(cancelled.id)).toMatchObject({ phase: 'Cancelled', queued: 0, completedAt: iso }));
    expect((await replays('PATCH', `/${going.id}`, { suspend: true })).body).toMatchObject({ phase: 'Suspended', waiting: null });
    await world.request('PATCH', `/api/destinations/${destination.id}`, { body: { isActive: true } });
    expect((await replays('PATCH', `/${going.id}`, { suspend: false })).status).toBe(200);
    await eventually(async () => expect(await read(going.id)).toMatchObject({ phase: 'Succeeded', queued: 2, delivered: 2 }));
  });
});
