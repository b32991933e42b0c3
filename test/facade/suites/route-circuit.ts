import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { RedisDeliveryQueue } from '../../../src/data/redis-delivery-queue.ts';
import { newEvent } from '../../support/new-event.ts';
import { failure } from '../../support/queue-worker.ts';
import { targetSetting } from '../../support/target-setting.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** The circuit of a route, read, reset and configured, with any store behind the API. */
export function describeRouteCircuit(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const call = async (method: string, path: string, body?: object) => (await world.request(method, `/api/${path}`, { body })).body;
  async function makeRoute() {
    const source = await call('POST', 'sources', { name: 'Orders' });
    const first = await call('POST', 'destinations', { name: 'First', url: 'https://first.example/' });
    const spare = await call('POST', 'destinations', { name: 'Spare', url: 'https://spare.example/' });
    const body = { name: 'All', sourceId: source.id, destinationIds: [first.id], failoverDestinationIds: [spare.id] };
    return { route: await call('POST', 'routes', body), first, spare };
  }

  /** A failed attempt at the first destination, which opens the circuit. */
  async function open(routeId: string, destinationId: string): Promise<void> {
    const queue = new RedisDeliveryQueue({ redis: world.redis.client, prefix: 'test:' });
    await queue.tend('w1', 64);
    const [key] = await world.redis.client.hvals('test:{cfg}:rec:route');
    const org: string = JSON.parse(key ?? '').org;
    const event = newEvent({ destinations: [destinationId] });
    await world.acceptor.accept({ ...event, org, targets: event.targets.map((target) => ({ ...target, routeId })) });
    const [target] = (await queue.targets(1)).targets;
    if (target === undefined) throw new Error('there is no target');
    await queue.configure(target, targetSetting({ circuit: { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1 } }));
    const { jobs } = await queue.dequeue('w1', 1);
    const outcome = { type: 'retry', attempt: failure, delayMs: 60_000 } as const;
    await queue.settle(
      'w1',
      jobs.map((job) => ({ job, outcome, maxAttempts: null })),
    );
  }

  test('the circuit of a route can be read, reset and configured', async () => {
    const { route, first, spare } = await makeRoute();
    const closed = {
      circuitState: 'closed',
      failureCount: 0,
      lastFailureAt: null,
      lastSuccessAt: null,
      openedAt: null,
      probeSuccessCount: 0,
    };
    expect(await call('GET', `routes/${route.id}/circuit-status`)).toEqual({
      ...closed,
      failureThreshold: 5,
      cooldownSeconds: 300,
      probeSuccessThreshold: 2,
      destinations: [
        { id: first.id, ...closed },
        { id: spare.id, ...closed },
      ],
    });
    await open(route.id, first.id);
    const status = await call('GET', `routes/${route.id}/circuit-status`);
    expect(status).toMatchObject({
      circuitState: 'open',
      failureCount: 1,
      lastFailureAt: expect.stringMatching(/Z$/),
      openedAt: expect.stringMatching(/Z$/),
      destinations: [
        { id: first.id, circuitState: 'open' },
        { id: spare.id, circuitState: 'closed' },
      ],
    });
    expect((await call('GET', `routes/${route.id}`)).circuitState).toBe('open');

    expect(await call('POST', `routes/${route.slug}/reset-circuit`)).toEqual({ message: expect.any(String), circuitState: 'closed' });
    expect(await call('GET', `routes/${route.id}/circuit-status`)).toMatchObject({
      circuitState: 'closed',
      failureCount: 0,
      openedAt: null,
    });

    expect(await call('PATCH', `routes/${route.id}/circuit-config`, { circuitFailureThreshold: 9, circuitCooldownSeconds: 30 })).toEqual({
      circuitFailureThreshold: 9,
      circuitCooldownSeconds: 30,
      circuitProbeSuccessThreshold: 2,
      message: expect.any(String),
    });
    expect(await call('GET', `routes/${route.id}`)).toMatchObject({ circuitFailureThreshold: 9, circuitCooldownSeconds: 30, name: 'All' });
  });

  test('a circuit of a route that is not there is 404, and one setting out of bounds is 400', async () => {
    const { route } = await makeRoute();
    for (const path of ['circuit-status', 'reset-circuit', 'circuit-config']) {
      const method = { 'circuit-status': 'GET', 'reset-circuit': 'POST', 'circuit-config': 'PATCH' }[path] ?? '';
      const answer = await world.request(method, `/api/routes/rte_none/${path}`, path === 'circuit-config' ? { body: {} } : {});
      expect([path, answer.status]).toEqual([path, 404]);
    }
    const wrong = await world.request('PATCH', `/api/routes/${route.id}/circuit-config`, { body: { circuitFailureThreshold: 0 } });
    expect([wrong.status, wrong.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    const other = await world.request('PATCH', `/api/routes/${route.id}/circuit-config`, { body: { name: 'x' } });
    expect(other.status).toBe(400);
  });
}
