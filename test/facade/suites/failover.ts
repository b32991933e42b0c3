import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import { newEvent } from '../../support/new-event.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import type { FacadeWorld } from '../facade-world.ts';

const onlyOne = { mode: 'concurrency', maxConcurrency: 1 };
const retryPolicy = { maxRetries: 3, initialDelay: 3_600_000, maxDelay: 3_600_000 };

interface Made {
  id: string;
  slug: string;
}

/** Failover from the resources to the receivers, with any store behind the API: destinations stop as users stop them. */
export function describeFailover(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  /** Answers 500. */
  let failing: Receiver;
  let working: Receiver;
  let made = 0;

  beforeAll(async () => {
    world = await start();
    failing = await startReceiver((response) => {
      response.statusCode = 500;
      response.end();
    });
    working = await startReceiver();
    await world.startWorker();
  });
  afterAll(async () => {
    await world.stop();
    await Promise.all([failing.close(), working.close()]);
  });

  async function plan(wanted: 'free' | 'enterprise'): Promise<void> {
    const organization = { kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme', plan: wanted } } as const;
    await world.store.apply(organization, { manager: 'kubectl', force: true });
    const id = await world.organizationId('acme');
    await eventually(async () => expect((await world.registry.get('organization', id))?.plan).toBe(wanted));
  }
  const key = (destination: Made) => ({ namespace: 'acme', name: destination.slug });

  /** What stops a destination; what messages wait for whose first one it is, null: they move on. */
  const stops: [how: string, stop: (destination: Made) => Promise<unknown>, waitsFor: string | null][] = [
    [
      'disabled by the API',
      async ({ id }) => expect((await world.request('PATCH', `/api/destinations/${id}`, { body: { enabled: false } })).status).toBe(200),
      'destination_disabled',
    ],
    [
      'disabled by kubectl',
      async (destination) => {
        const { spec } = await world.store.get('Destination', key(destination));
        const metadata = key(destination);
        await world.store.apply({ kind: 'Destination', metadata, spec: { ...spec, enabled: false } }, { manager: 'kubectl', force: true });
      },
      'destination_disabled',
    ],
    ['suspended by the plan', () => plan('free'), 'destination_suspended'],
    ['deleted by kubectl', (destination) => world.store.delete('Destination', key(destination)), null],
  ];

  /** A route whose first destination and first failover destination answer 500, and whose second one works. Its destinations in this order. */
  async function makeRoute(throttled: 0 | 1): Promise<{ route: Made; destinations: [Made, Made, Made] }> {
    await plan('enterprise');
    const name = `failover ${++made}`;
    const destination = (k: number, url: string): Promise<Made> =>
      world.create('destinations', { name: `${name} ${k}`, url, retryPolicy, ...(k === throttled ? { throttle: onlyOne } : {}) });
    const destinations: [Made, Made, Made] = [
      await destination(0, failing.url),
      await destination(1, failing.url),
      await destination(2, working.url),
    ];
    const source: Made = await world.create('sources', { name });
    const [first, ...spares] = destinations.map(({ id }) => id);
    const route: Made = await world.create('routes', {
      name,
      sourceId: source.id,
      destinationIds: [first],
      failoverDestinationIds: spares,
      failoverAfterAttempts: 1,
    });
    return { route, destinations };
  }

  async function send({ route, destinations: [first] }: Awaited<ReturnType<typeof makeRoute>>): Promise<string> {
    const event = newEvent({ org: await world.organizationId('acme'), destinations: [first.id] });
    const targets = event.targets.map((target) => ({ ...target, routeId: route.id }));
    await world.acceptor.accept({ ...event, targets });
    return targets[0]?.messageId ?? '';
  }

  const becomes = (id: string, expected: object) =>
    eventually(async () => expect((await world.request('GET', `/api/deliveries/${id}`)).body).toMatchObject(expected));

  describe.each(stops)('of a route, a destination that is %s', (_, stop, waitsFor) => {
    test('as a failover destination is passed over for the next one', async () => {
      const made = await makeRoute(1);
      const [first, spare, last] = made.destinations;
      await becomes(await send(made), { status: 'retrying', destinationId: spare.id, failedOverFrom: first.id, waitingFor: 'retry' });
      await stop(spare);
      await eventually(async () => {
        const record = await world.registry.getOf(await world.organizationId('acme'), 'route', made.route.id);
        expect(record?.failover.destinations.map(({ id }) => id)).toEqual([last.id]);
      });
      await becomes(await send(made), { status: 'delivered', attempts: 2, destinationId: last.id, failedOverFrom: first.id });
    });

    test('while a message is to be tried again there hands it on to the next one', async () => {
      const made = await makeRoute(1);
      const [first, spare, last] = made.destinations;
      const id = await send(made);
      await becomes(id, { status: 'retrying', attempts: 2, destinationId: spare.id, failedOverFrom: first.id, waitingFor: 'retry' });
      await stop(spare);
      await becomes(id, { status: 'delivered', attempts: 3, destinationId: last.id, failedOverFrom: first.id, waitingFor: null });
    });

    test('as the first one holds its messages, which say what they wait for, and when it is gone hands them on', async () => {
      const made = await makeRoute(0);
      const [first, spare] = made.destinations;
      await stop(first);
      await eventually(async () => {
        const record = await world.registry.getOf(await world.organizationId('acme'), 'destination', first.id);
        expect(record?.enabled ?? false).toBe(false);
      });
      await becomes(
        await send(made),
        waitsFor === null
          ? { status: 'retrying', attempts: 1, destinationId: spare.id, failedOverFrom: first.id, waitingFor: 'retry' }
          : { status: 'pending', attempts: 0, destinationId: first.id, waitingFor: waitsFor },
      );
    });
  });
}
