import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { CircuitSetting } from '../../../src/core/circuit.ts';
import type { Outcome } from '../../../src/data/queue/delivery-queue.ts';
import { RedisDeliveryQueue } from '../../../src/data/queue/redis-delivery-queue.ts';
import { eventually } from '../../support/eventually.ts';
import { newEvent } from '../../support/new-event.ts';
import { delivered, failure, settleAll } from '../../support/queue-worker.ts';
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

  const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
  /** Their names in the hosted API. */
  const named = ({
    failureCount,
    openedAt,
    probeSuccessCount,
  }: {
    failureCount: unknown;
    openedAt: unknown;
    probeSuccessCount: unknown;
  }) => ({
    consecutiveFailures: failureCount,
    circuitOpenedAt: openedAt,
    probeAttempts: probeSuccessCount,
  });
  const newQueue = () => new RedisDeliveryQueue({ redis: world.redis.client, prefix: 'test:' });

  async function send(routeId: string, destinationId: string): Promise<void> {
    const event = newEvent({ org: await world.organizationId('acme'), destinations: [destinationId] });
    await world.acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, routeId })) });
  }

  /** A failed attempt at the first destination, which opens the circuit. */
  async function open(routeId: string, destinationId: string, circuit: Partial<CircuitSetting> = {}): Promise<void> {
    const queue = newQueue();
    await queue.refreshShard('w1', 64);
    await send(routeId, destinationId);
    const target = (await queue.targets(1)).targets.find((each) => each.routeId === routeId);
    if (target === undefined) throw new Error('there is no target');
    const setting = { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1, ...circuit };
    await queue.configure(target, targetSetting({ circuit: setting }));
    const { jobs } = await queue.dequeue('w1', 1);
    // It does not come back where a later test takes what is due.
    const outcome = { type: 'retry', attempt: failure, delayMs: 3_600_000 } as const;
    await queue.settle(
      'w1',
      jobs.map((job) => ({ job, outcome, maxAttempts: null })),
    );
  }

  /** A message that is taken, once it may be, and ends so. */
  async function settleNext(queue: RedisDeliveryQueue, outcome: Outcome): Promise<void> {
    const jobs = await eventually('a job', 30_000, async () => {
      await queue.refreshShard('w1', 64);
      await queue.promote();
      const taken = await queue.dequeue('w1', 1);
      return taken.jobs.length === 0 ? undefined : taken.jobs;
    });
    expect(await settleAll(queue, 'w1', jobs, outcome)).toEqual([true]);
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
      ...named(closed),
      timeUntilProbeSeconds: null,
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
  });

  test('a circuit that probes reports it, with all documented fields, until it is closed', async () => {
    const { route, first, spare } = await makeRoute();
    await open(route.id, first.id, { cooldownSeconds: 1, probeSuccessThreshold: 2 });
    const queue = newQueue();
    const probe = async () => {
      await send(route.id, first.id);
      await settleNext(queue, delivered);
    };
    await probe();
    const readings = {
      circuitState: 'half_open',
      failureCount: 1,
      lastFailureAt: iso,
      lastSuccessAt: iso,
      openedAt: iso,
      probeSuccessCount: 1,
    };
    const untouched = { lastFailureAt: null, lastSuccessAt: null, openedAt: null };
    const closed = { circuitState: 'closed', failureCount: 0, probeSuccessCount: 0 };
    expect(await call('GET', `routes/${route.id}/circuit-status`)).toEqual({
      ...readings,
      ...named(readings),
      timeUntilProbeSeconds: null,
      failureThreshold: 5,
      cooldownSeconds: 300,
      probeSuccessThreshold: 2,
      destinations: [
        { id: first.id, ...readings },
        { id: spare.id, ...closed, ...untouched },
      ],
    });
    expect((await call('GET', `routes/${route.id}`)).circuitState).toBe('half_open');
    await probe();
    expect(await call('GET', `routes/${route.id}/circuit-status`)).toMatchObject({
      ...closed,
      lastFailureAt: iso,
      lastSuccessAt: iso,
      openedAt: null,
    });
  });

  test('what never left is neither a failure nor a success of the circuit, and reset closes one that is being probed, too', async () => {
    const { route, first } = await makeRoute();
    await open(route.id, first.id, { cooldownSeconds: 1, probeSuccessThreshold: 2 });
    const queue = newQueue();
    const status = () => call('GET', `routes/${route.id}/circuit-status`);
    const probe = async (outcome: Outcome) => {
      await send(route.id, first.id);
      await settleNext(queue, outcome);
    };
    await probe(delivered);
    const probed = await status();
    expect(probed).toMatchObject({ circuitState: 'half_open', probeSuccessCount: 1 });
    for (const each of ['transform_failed', 'filtered'] as const) {
      await probe({ type: 'unsent', status: each, reason: 'the code', tookMs: 5 });
      expect(await status()).toEqual(probed);
    }
    expect(await call('POST', `routes/${route.id}/reset-circuit`)).toEqual({ message: expect.any(String), circuitState: 'closed' });
    expect(await status()).toMatchObject({ circuitState: 'closed', failureCount: 0, probeSuccessCount: 0, openedAt: null });
  });

  test('circuit-config changes each of its values alone, and answers all three', async () => {
    const { route } = await makeRoute();
    const values = { circuitFailureThreshold: 5, circuitCooldownSeconds: 300, circuitProbeSuccessThreshold: 2 };
    for (const change of [
      {},
      { circuitFailureThreshold: 1 },
      { circuitCooldownSeconds: 1 },
      { circuitProbeSuccessThreshold: 1 },
      { circuitFailureThreshold: 1000, circuitCooldownSeconds: 86_400, circuitProbeSuccessThreshold: 100 },
    ]) {
      Object.assign(values, change);
      const answer = await world.request('PATCH', `/api/routes/${route.id}/circuit-config`, { body: change });
      expect([answer.status, answer.body]).toEqual([200, { ...values, message: expect.any(String) }]);
      expect(await call('GET', `routes/${route.id}`)).toMatchObject({ ...values, name: 'All' });
      expect(await call('GET', `routes/${route.id}/circuit-status`)).toMatchObject({
        failureThreshold: values.circuitFailureThreshold,
        cooldownSeconds: values.circuitCooldownSeconds,
        probeSuccessThreshold: values.circuitProbeSuccessThreshold,
      });
    }
  });

  test('a circuit of a route that is not there is 404, and one setting out of bounds is 400', async () => {
    const { route } = await makeRoute();
    for (const path of ['circuit-status', 'reset-circuit', 'circuit-config']) {
      const method = { 'circuit-status': 'GET', 'reset-circuit': 'POST', 'circuit-config': 'PATCH' }[path] ?? '';
      const answer = await world.request(method, `/api/routes/rte_none/${path}`, path === 'circuit-config' ? { body: {} } : {});
      expect([path, answer.status]).toEqual([path, 404]);
    }
    for (const wrong of [
      { circuitFailureThreshold: 0 },
      { circuitFailureThreshold: 1001 },
      { circuitCooldownSeconds: 0 },
      { circuitCooldownSeconds: 86_401 },
      { circuitProbeSuccessThreshold: 0 },
      { circuitProbeSuccessThreshold: 101 },
    ]) {
      const answer = await world.request('PATCH', `/api/routes/${route.id}/circuit-config`, { body: wrong });
      expect([wrong, answer.status, answer.body.code]).toEqual([wrong, 400, 'VALIDATION_FAILED']);
    }
    const other = await world.request('PATCH', `/api/routes/${route.id}/circuit-config`, { body: { name: 'x' } });
    expect(other.status).toBe(400);
  });
}
