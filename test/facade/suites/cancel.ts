import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { RedisStatisticsReader } from '../../../src/data/analytics/redis-statistics-reader.ts';
import type { RedisDeliveryQueue } from '../../../src/data/queue/redis-delivery-queue.ts';
import { systemClock } from '../../../src/runtime/system-clock.ts';
import { emptiedQueue } from '../../support/emptied-queue.ts';
import { newEvent } from '../../support/new-event.ts';
import { attempt, delivered, failure, settleAll, takeFrom } from '../../support/queue-worker.ts';
import { newWebhookEvent } from '../../support/webhook-messages.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** How deliveries and messages to endpoints are cancelled, with any store behind the API. */
export function describeCancel(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  let org: string;
  let queue: RedisDeliveryQueue;
  beforeAll(async () => {
    world = await start();
    org = (await world.store.get('Organization', { name: 'acme' })).status?.id ?? '';
  });
  afterAll(() => world.stop());
  beforeEach(async () => {
    queue = await emptiedQueue(world);
  });

  const call = (method: string, path: string, body?: object) => world.request(method, `/api${path}`, { body });
  const inADay = { type: 'retry' as const, attempt: failure, delayMs: 86_400_000 };

  async function accept(destinations: string[] = ['dst_a']): Promise<string[]> {
    const event = newEvent({ org, destinations });
    await world.acceptor.accept(event);
    return event.targets.map(({ messageId }) => messageId);
  }

  async function acceptMessage(eventType = 'order.paid'): Promise<string> {
    const event = newWebhookEvent(org, [{ id: 'ep_a', applicationId: 'app_a' }], { eventType });
    await world.acceptor.accept(event);
    return event.targets[0]?.messageId ?? '';
  }

  const take = (webhooks = false) =>
    takeFrom(queue, 'w1', 64, webhooks ? { sharedLimiter: { id: 'app_a', revision: 1, windows: [{ ms: 1000, most: 1000 }] } } : {});

  test('a delivery that waits is cancelled once: a dead letter that says by whom, is counted by its reason, and can be replayed', async () => {
    const [id = ''] = await accept();
    for (let time = 0; time < 2; time++)
      expect(await call('POST', `/deliveries/${id}/cancel`)).toMatchObject({
        status: 200,
        body: { deliveryId: id, status: 'cancelled', message: 'The delivery is cancelled.' },
      });
    const { body: record } = await call('GET', `/deliveries/${id}`);
    expect(record).toMatchObject({
      status: 'dlq',
      deadLetterReason: 'cancelled',
      lastErrorType: 'cancelled',
      attempts: 0,
      waitingFor: null,
      cancellation: { by: expect.any(String), at: expect.any(String) },
    });
    expect((await call('GET', '/deliveries/dead-letter-stats')).body).toMatchObject({ total: 1, byReason: { cancelled: 1 } });
    expect((await call('GET', '/deliveries?errorType=cancelled')).body.data).toMatchObject([{ id }]);
    const { body: story } = await call('GET', `/explain/${id}`);
    expect(story).toMatchObject({ state: 'dlq', summary: 'The delivery is given up. It is a dead letter, because it was cancelled.' });
    expect(story.story.map(({ what }: { what: string }) => what)).toEqual(expect.arrayContaining(['cancelled', 'dead_letter']));
    expect(story.advice).toMatchObject([{ text: 'Replay it to undo the cancel.' }]);
    expect(await take()).toEqual([]);
    const { body: replay } = await call('POST', `/deliveries/${id}/replay`);
    expect((await take()).map(({ messageId }) => messageId)).toEqual([replay.newDeliveryId]);
  });

  test('a message to an endpoint that waits for its retry is cancelled, and its closed reasons say max_retries_exceeded', async () => {
    const id = await acceptMessage();
    await settleAll(queue, 'w1', await take(true), inADay);
    expect((await call('GET', `/outbound-messages/${id}`)).body.data).toMatchObject({ status: 'failed', attempts: 1 });
    for (let time = 0; time < 2; time++)
      expect(await call('POST', `/outbound-messages/${id}/cancel`)).toMatchObject({
        status: 200,
        body: { data: { messageId: id, status: 'cancelled' } },
      });
    expect((await call('GET', `/outbound-messages/${id}`)).body.data).toMatchObject({
      status: 'dlq',
      dlqReason: 'max_retries_exceeded',
      lastErrorType: 'cancelled',
      attempts: 1,
      cancellation: { by: expect.any(String) },
    });
    expect((await call('GET', '/outbound-messages/dlq/messages?reason=max_retries_exceeded&errorType=cancelled')).body.data).toMatchObject([
      { id },
    ]);
    expect((await call('GET', '/outbound-messages/dlq/stats')).body.data).toMatchObject({
      total: 1,
      byReason: { max_retries_exceeded: 1 },
    });
    expect((await call('GET', '/outbound-messages/stats/summary')).body.data).toMatchObject({ dlq: 1, failed: 0, total: 1 });
    expect((await call('GET', `/explain/${id}`)).body).toMatchObject({
      summary: 'The message is given up. It is a dead letter, because it was cancelled.',
      advice: [{ text: 'Send it again to undo the cancel.' }],
    });
    expect(await call('POST', `/outbound-messages/dlq/${id}/retry`)).toMatchObject({ status: 201 });
  });

  test('an attempt that is under way is not interrupted: its success stays one, its failure ends the delivery', async () => {
    const [good = '', bad = ''] = await accept(['dst_a', 'dst_b']);
    const jobs = await take();
    for (const id of [good, bad])
      expect(await call('POST', `/deliveries/${id}/cancel`)).toMatchObject({ status: 200, body: { status: 'cancelling' } });
    const { body: story } = await call('GET', `/explain/${good}`);
    expect(story.summary).toContain('It ends then, unless that succeeds.');
    expect(
      await settleAll(
        queue,
        'w1',
        jobs.filter(({ messageId }) => messageId === good),
        delivered,
      ),
    ).toEqual([true]);
    expect(
      await settleAll(
        queue,
        'w1',
        jobs.filter(({ messageId }) => messageId === bad),
        inADay,
      ),
    ).toEqual([true]);
    expect((await call('GET', `/deliveries/${good}`)).body).toMatchObject({
      status: 'delivered',
      deadLetterReason: null,
      lastErrorType: null,
    });
    expect((await call('GET', `/deliveries/${bad}`)).body).toMatchObject({ status: 'dlq', deadLetterReason: 'cancelled', attempts: 1 });
  });

  test('what has ended is a conflict, and what is unknown or of another organization is not found', async () => {
    const [id = ''] = await accept();
    await settleAll(queue, 'w1', await take(), delivered);
    const message = await acceptMessage();
    expect(await call('POST', `/deliveries/${id}/cancel`)).toMatchObject({
      status: 409,
      body: { code: 'CONFLICT', message: 'The delivery has ended: only what waits can be cancelled.' },
    });
    await world.addOrganization('cancel-other');
    const key = await world.addKey('cancel-other');
    const viewer = await world.addKey('acme', { role: 'viewer' });
    for (const path of [
      `deliveries/${id}`,
      `deliveries/${message}`,
      `outbound-messages/${message}`,
      `outbound-messages/${id}`,
      'deliveries/nonsense',
    ]) {
      expect(await world.request('POST', `/api/${path}/cancel`, { key })).toMatchObject({ status: 404 });
      expect(await world.request('POST', `/api/${path}/cancel`, { key: viewer })).toMatchObject({ status: 403 });
    }
    expect(await call('POST', `/deliveries/${message}/cancel`)).toMatchObject({ status: 404 });
    expect(await call('POST', `/outbound-messages/${id}/cancel`)).toMatchObject({ status: 404 });
    expect((await call('GET', `/outbound-messages/${message}`)).body.data).toMatchObject({ status: 'pending' });
    const bulk = { ids: [id, message, 'nonsense'] };
    expect((await world.request('POST', '/api/deliveries/bulk-cancel', { key, body: bulk })).body).toMatchObject({
      cancelled: 0,
      skipped: 3,
      deliveries: bulk.ids.map((deliveryId) => ({ deliveryId, result: 'not_found' })),
    });
    expect((await world.request('POST', '/api/deliveries/cancel', { key, body: { filter: {} } })).body).toMatchObject({ matched: 0 });
  });

  test('deliveries and messages are cancelled in bulk, with a result for each', async () => {
    const [held = ''] = await accept();
    await take();
    const [waiting = ''] = await accept();
    const ids = [waiting, held, waiting, 'unknown'];
    for (let time = 0; time < 2; time++)
      expect(await call('POST', '/deliveries/bulk-cancel', { ids })).toMatchObject({
        status: 200,
        body: {
          cancelled: 1,
          cancelling: 1,
          skipped: 1,
          deliveries: [
            { deliveryId: waiting, result: 'cancelled' },
            { deliveryId: held, result: 'cancelling' },
            { deliveryId: 'unknown', result: 'not_found' },
          ],
        },
      });
    const messages = [await acceptMessage(), await acceptMessage()];
    expect((await call('POST', '/outbound-messages/cancel-bulk', { messageIds: messages })).body.data).toMatchObject({
      cancelled: 2,
      messages: messages.map((messageId) => ({ messageId, result: 'cancelled' })),
    });
    expect(await call('POST', '/deliveries/bulk-cancel', { ids: Array.from({ length: 101 }, () => 'x') })).toMatchObject({ status: 400 });
  });

  test('a filter cancels what waits in bounded steps, after a dry run that counts, and nothing that came later', async () => {
    for (let k = 0; k < 620; k++) await accept(['dst_a']);
    const [other = ''] = await accept(['dst_b']);
    const filter = { destinationId: 'dst_a' };
    const early = await call('POST', '/deliveries/cancel', { filter: { ...filter, to: '2026-01-01T00:00:00Z' } });
    expect(early.body).toMatchObject({ matched: 0, upTo: '2026-01-01T00:00:00.000Z', nextCursor: null });
    const counted = [];
    for (let cursor: string | undefined, isOver = false; !isOver; ) {
      const { body } = await call('POST', '/deliveries/cancel', { filter, dryRun: true, cursor });
      counted.push(body.matched);
      expect(body).toMatchObject({ cancelled: 0, dryRun: true });
      cursor = body.nextCursor ?? undefined;
      isOver = cursor === undefined;
    }
    expect(counted).toEqual([500, 120]);
    const { body: first } = await call('POST', '/deliveries/cancel', { filter });
    expect(first).toMatchObject({ matched: 500, cancelled: 500, cancelling: 0, skipped: 0, dryRun: false, nextCursor: expect.any(String) });
    const [late = ''] = await accept(['dst_a']);
    const second = async () => (await call('POST', '/deliveries/cancel', { filter, cursor: first.nextCursor })).body;
    expect(await second()).toMatchObject({ matched: 120, cancelled: 120, upTo: first.upTo, nextCursor: null });
    expect(await second()).toMatchObject({ matched: 0, cancelled: 0, nextCursor: null });
    expect((await take()).map(({ messageId }) => messageId).sort()).toEqual([late, other].sort());
    expect((await call('GET', '/deliveries/dead-letter-stats')).body).toMatchObject({ byReason: { cancelled: 620 } });
    const wrong = await call('POST', '/deliveries/cancel', { filter: {}, cursor: first.nextCursor });
    expect(wrong).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED', message: 'cursor is not valid.' } });
  });

  test('messages to endpoints are cancelled by filter, those with an attempt under way when their status is named', async () => {
    const [underWay] = [await acceptMessage('a.one')];
    const [job] = await take(true);
    const ids = [await acceptMessage('a.one'), await acceptMessage('b.two')];
    const cancel = async (filter: object) => (await call('POST', '/outbound-messages/cancel', { filter })).body.data;
    expect(await cancel({ id: ids, where: 'event.data.a == 2' })).toMatchObject({ matched: 0 });
    expect(await cancel({ id: ids, where: 'event.data.a == 1', attemptsMax: 0 })).toMatchObject({ matched: 2, cancelled: 2 });
    expect(await cancel({})).toMatchObject({ matched: 0 });
    expect(await cancel({ status: ['processing'] })).toMatchObject({ matched: 1, cancelled: 0, cancelling: 1 });
    expect(job?.messageId).toBe(underWay);
    await queue.reclaim(['w1']);
    expect((await call('GET', `/outbound-messages/${underWay}`)).body.data).toMatchObject({
      status: 'dlq',
      lastErrorType: 'cancelled',
      attempts: 0,
    });
  });

  test('a filter may name several destinations, routes, endpoints and applications, as lists do', async () => {
    const ids = await accept(['dst_a', 'dst_b', 'dst_c']);
    const cancel = async (filter: object) => (await call('POST', '/deliveries/cancel', { filter, dryRun: true })).body;
    expect(await cancel({ destinationId: ['dst_a', 'dst_c'] })).toMatchObject({ matched: 2 });
    expect(await cancel({ destinationId: ['dst_b'], routeId: ['rte_a'] })).toMatchObject({ matched: 1 });
    const named = { filter: { destinationId: ['dst_b', 'dst_c'], routeId: 'rte_a' } };
    expect((await call('POST', '/deliveries/cancel', named)).body).toMatchObject({ matched: 2, cancelled: 2 });
    expect((await take()).map(({ messageId }) => messageId)).toEqual(ids.slice(0, 1));
    const sent = newWebhookEvent(
      org,
      ['ep_a', 'ep_b', 'ep_c'].map((id) => ({ id, applicationId: 'app_a' })),
    );
    await world.acceptor.accept(sent);
    const filter = { endpointId: ['ep_a', 'ep_c'], applicationId: ['app_a'] };
    expect((await call('POST', '/outbound-messages/cancel', { filter })).body.data).toMatchObject({ matched: 2, cancelled: 2 });
    const { data } = (await call('GET', '/outbound-messages?status=pending')).body;
    expect(data).toMatchObject([{ endpointId: 'ep_b' }]);
  });

  test('a filter by event cancels what waits of it, and nothing of others', async () => {
    const event = newEvent({ org, destinations: ['dst_a', 'dst_b', 'dst_c'] });
    const notBeforeMs = Date.now() + 3_600_000;
    await world.acceptor.accept({ ...event, notBeforeMs, targets: event.targets.map((each) => ({ ...each, notBeforeMs })) });
    const [other = ''] = await accept();
    const cancel = async (filter: object, dryRun = false) => (await call('POST', '/deliveries/cancel', { filter, dryRun })).body;
    expect(await cancel({ eventId: event.id, destinationId: 'dst_b' }, true)).toMatchObject({ matched: 1, scanned: expect.any(Number) });
    expect(await cancel({ eventId: event.id, id: [other] }, true)).toMatchObject({ matched: 0 });
    expect(await cancel({ eventId: event.id })).toMatchObject({ matched: 3, cancelled: 3, nextCursor: null });
    expect(await cancel({ eventId: event.id })).toMatchObject({ matched: 0 });
    expect((await take()).map(({ messageId }) => messageId)).toEqual([other]);

    const sent = newWebhookEvent(org, [{ id: 'ep_a', applicationId: 'app_a' }]);
    await world.acceptor.accept(sent);
    await acceptMessage();
    const ofEvent = { filter: { eventId: sent.id } };
    expect((await call('POST', '/outbound-messages/cancel', ofEvent)).body.data).toMatchObject({ matched: 1, cancelled: 1 });
    expect(await call('POST', '/deliveries/cancel', ofEvent)).toMatchObject({ status: 404 });
    expect(await call('POST', '/outbound-messages/cancel', { filter: { eventId: event.id } })).toMatchObject({ status: 404 });
  });

  test('a filter by an event with more than 1,000 messages is refused', async () => {
    const targets = Array.from({ length: 1001 }, (_, i) => ({ id: `ep_${i}`, applicationId: 'app_a' }));
    const sent = newWebhookEvent(org, targets);
    await world.acceptor.accept(sent);
    const complaint = 'is of an event with more than 1000 messages: narrow by other filters';
    expect(await call('POST', '/outbound-messages/cancel', { filter: { eventId: sent.id } })).toMatchObject({
      status: 400,
      body: { details: { 'filter.eventId': [complaint] } },
    });
  });

  test.each([
    ['deliveries/cancel', { filter: { destinationId: [] } }, 400],
    ['deliveries/cancel', { filter: { destinationId: Array.from({ length: 11 }, (_, i) => `dst_${i}`) } }, 400],
    ['deliveries/cancel', { filter: { routeId: ['unknown', 'rte_a'] } }, 404],
    ['deliveries/cancel', { filter: { eventId: 'unknown' } }, 404],
    ['deliveries/cancel', { filter: { where: 'event.data.' } }, 400],
    ['deliveries/cancel', { filter: { status: ['dlq'] } }, 400],
    ['deliveries/cancel', { filter: { attemptsMin: 3, attemptsMax: 1 } }, 400],
    ['deliveries/cancel', {}, 400],
    ['deliveries/cancel', { filter: { routeId: 'unknown' } }, 404],
    ['outbound-messages/cancel', { filter: { endpointId: 'unknown' } }, 404],
    ['outbound-messages/cancel', { filter: { from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' } }, 400],
  ])('%s refuses %j', async (path, body, status) => {
    expect(await call('POST', `/${path}`, body)).toMatchObject({ status });
  });

  test('a cancel is no failure of the target: neither rates nor alerts nor circuits count it', async () => {
    const [id = ''] = await accept();
    await call('POST', `/deliveries/${id}/cancel`);
    const underWay = await accept();
    const jobs = await take();
    await call('POST', `/deliveries/${underWay[0]}/cancel`);
    await settleAll(queue, 'w1', jobs, { type: 'back' });
    await accept();
    await settleAll(queue, 'w1', await take(), { type: 'delivered', attempt });
    const statistics = new RedisStatisticsReader({ redis: world.redis.client, prefix: 'test:', clock: systemClock });
    const { total } = await statistics.ofOrganization(org, '1h');
    expect([total.delivered, total.failed]).toEqual([1, 0]);
  });
}
