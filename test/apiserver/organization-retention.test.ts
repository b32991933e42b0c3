import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type ControlPlaneWorld, startControlPlaneWorld } from '../e2e/control-plane-world.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

const apiVersion = 'posthorn.dev/v1alpha1';
const inside = (name: string) => ({ namespace: 'acme', name });
const organization = {
  apiVersion,
  kind: 'Organization',
  metadata: { name: 'acme' },
  spec: { namespace: 'acme', egress: { allowedCidrs: ['127.0.0.0/8'] } },
};

let world: ControlPlaneWorld;
let receiver: Receiver;
let ingestUrl: string;

beforeAll(async () => {
  [world, receiver] = await Promise.all([startControlPlaneWorld(), startReceiver()]);
  const port = await freePort();
  ingestUrl = `http://127.0.0.1:${port}/ingest/acme/orders`;
  world.start('controller');
  world.start('ingest', { port });
}, 120_000);
afterAll(async () => {
  await world?.stop();
  await receiver?.close();
}, 60_000);

/** Events that ingest has accepted: one or two more until it sees that the organization has gone. */
let accepted = 0;
async function post(): Promise<number> {
  const sent = fetch(ingestUrl, { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } });
  const status = await sent.then((answer) => answer.status).catch(() => 0);
  if (status === 200) accepted++;
  return status;
}
const becomes = (status: number) => eventually(async () => expect(await post()).toBe(status), 60_000);
const find = (): Promise<Any> =>
  world.controlPlane.request('GET', `/apis/${apiVersion}/organizations/acme`).catch((error: Error) => {
    if (!error.message.includes('404')) throw error;
    return null;
  });

test('what an organization has queued waits while it is deleted, and goes out once an Organization of the same name takes it up under the same id', async () => {
  await world.apply([organization]);
  await world.waitUntilReady(organization);
  const resources = [
    { apiVersion, kind: 'Source', metadata: inside('orders'), spec: {} },
    { apiVersion, kind: 'Destination', metadata: inside('shop'), spec: { type: 'http', http: { url: receiver.url } } },
    { apiVersion, kind: 'Route', metadata: inside('all'), spec: { sourceRef: { name: 'orders' }, destinationRefs: [{ name: 'shop' }] } },
  ];
  await world.apply(resources);
  for (const resource of resources) await world.waitUntilReady(resource);
  const { id } = (await find()).status;
  await becomes(200);
  // No worker delivers yet.
  await world.remove(organization);
  await eventually(async () => expect(await find()).toBeNull(), 60_000);
  await becomes(404);
  world.start('delivery');
  await eventually(async () => expect(await world.redis.client.keys('*}:paused')).toHaveLength(1), 60_000);
  expect(receiver.requests).toHaveLength(0);
  for (const plural of ['sources', 'destinations', 'routes'])
    expect((await world.controlPlane.request('GET', `/apis/${apiVersion}/namespaces/acme/${plural}`)) as Any).toMatchObject({
      items: [{}],
    });
  await world.apply([organization]);
  await world.waitUntilReady(organization);
  expect((await find()).status.id).toBe(id);
  await eventually(() => expect(receiver.requests).toHaveLength(accepted), 60_000);
  await becomes(200);
  expect(world.forbidden()).toEqual([]);
}, 300_000);
