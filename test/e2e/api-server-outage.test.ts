import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type CuttableLine, startCuttableLine } from '../support/cuttable-line.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import type { Program } from '../support/program.ts';
import { startTlsReceiver, type TlsReceiver } from '../support/tls-receiver.ts';
import { verifies } from '../support/webhook-verification.ts';
import { type ControlPlaneWorld, startControlPlaneWorld } from './control-plane-world.ts';
import { githubDeliveryOf } from './github.ts';
import { Shop } from './manifests.ts';
import { ingest, RestClient } from './rest.ts';

describe('without the API server', () => {
  const shop = new Shop('outage');
  let world: ControlPlaneWorld;
  let line: CuttableLine;
  let url: string;
  let ingestUrl: string;
  let rest: RestClient;
  let kept: TlsReceiver;
  let added: TlsReceiver;
  let customer: TlsReceiver;
  let applicationId: string;
  let cronJobId: string;
  let controller: Program;

  const send = (event = 'push') => ingest(ingestUrl, 'outage/github', githubDeliveryOf(event, shop.githubSecret));
  const arrives = async (receiver: TlsReceiver): Promise<void> => {
    const before = receiver.requests.length;
    const { status, body } = await send();
    expect([status, body]).toEqual([200, expect.objectContaining({ success: true })]);
    await receiver.waitForRequests(before + 1, 30_000);
  };
  const made = async (path: string, body: object) => {
    const answer = await rest.send('POST', `/api/${path}`, body);
    expect([path, answer.status]).toEqual([path, 201]);
    return answer.body.data;
  };
  const secrets = new Map<string, string>();
  const subscribed = async (path: string): Promise<void> => {
    const endpoint = await made('webhook-endpoints', { applicationId, url: customer.url(path) });
    await made('webhook-subscriptions', { endpointId: endpoint.id, eventTypeId: 'order.paid' });
    secrets.set(path, endpoint.secret);
  };
  /** An event that is sent reaches the endpoints with these paths, signed. */
  const reaches = async (paths: string[]): Promise<void> => {
    const before = customer.requests.length;
    const { eventId, messagesQueued } = await made('send-event', { eventType: 'order.paid', payload: { id: 'o-17' } });
    expect(messagesQueued).toBe(paths.length);
    await customer.waitForRequests(before + paths.length, 30_000);
    const requests = customer.requests.slice(before);
    expect(requests.map(({ path }) => path).sort()).toEqual(paths);
    for (const request of requests) {
      expect(request.headers['x-posthorn-event-id']).toBe(eventId);
      expect(verifies(request, secrets.get(request.path) ?? '')).toBe(true);
    }
  };

  beforeAll(async () => {
    world = await startControlPlaneWorld();
    const tls = world.authority.issue(['127.0.0.1']);
    kept = await startTlsReceiver({ tls, address: '127.0.0.1' });
    added = await startTlsReceiver({ tls, address: '127.0.0.1' });
    customer = await startTlsReceiver({ tls, address: '127.0.0.1' });
    const { hostname, port } = new URL(world.controlPlane.url);
    line = await startCuttableLine({ host: hostname, port: Number(port) });
    const through = (role: 'controller' | 'api') => ({ kubeconfig: world.kubeconfig(role, `https://127.0.0.1:${line.port}`) });
    const [apiPort, ingestPort] = [await freePort(), await freePort()];
    url = `http://127.0.0.1:${apiPort}`;
    ingestUrl = `http://127.0.0.1:${ingestPort}`;
    rest = new RestClient(url, shop.apiKey);
    controller = world.start('controller', through('controller'));
    world.start('api', { ...through('api'), port: apiPort });
    world.start('ingest', { port: ingestPort });
    world.start('delivery');
    const organization = shop.organization(['127.0.0.0/8']);
    await world.apply([organization]);
    await world.waitUntilReady(organization);
    const resources = [...shop.secrets, shop.apiKeyManifest, shop.source, shop.destination('kept', kept.url()), shop.route('kept', 'kept')];
    await world.apply(resources);
    for (const resource of resources.filter(({ apiVersion }) => apiVersion !== 'v1')) await world.waitUntilReady(resource);
    await eventually('the api to be ready', 60_000, async () => (await fetch(`${url}/readyz`)).ok);
    await eventually('the first event to be taken', 60_000, async () => (await send()).status === 200);
    await kept.waitForRequests(1, 30_000);
    const cronJob = { name: 'Yearly', cronExpression: '0 6 1 1 *', url: kept.url('/cron') };
    cronJobId = (await rest.send('POST', '/api/cron', cronJob)).body.cronJob.id;
    await made('event-types', { name: 'order.paid' });
    applicationId = (await made('webhook-applications', { name: 'Customer' })).id;
    await subscribed('/first');
    await reaches(['/first']);
  }, 180_000);
  afterAll(async () => {
    await line?.stop();
    await Promise.all([kept, added, customer].map((receiver) => receiver?.stop()));
    await world?.stop();
  });

  test('ingest and delivery continue, and reads of the API, cron, tests, and webhooks for customers, new endpoints included', async () => {
    await world.controlPlane.stopApiServer();
    for (let i = 0; i < 5; i++) await arrives(kept);
    expect((await rest.send('GET', '/api/events')).status).toBe(200);
    expect((await rest.send('GET', '/api/routes')).body.data).toHaveLength(1);
    for (const path of ['routes', 'destinations']) expect((await rest.send('GET', `/api/${path}/kept`)).body.slug).toBe('kept');
    const write = await rest.send('POST', '/api/destinations', { name: 'x', url: 'https://example.com' });
    expect(write).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    const triggered = await rest.send('POST', `/api/cron/${cronJobId}/trigger`, {});
    expect(triggered).toMatchObject({ status: 200, body: { execution: { status: 'success', responseStatus: 200 } } });
    expect(kept.requests.at(-1)?.path).toBe('/cron');
    const tested = await rest.send('POST', '/api/destinations/kept/test', {});
    expect(tested).toMatchObject({ status: 200, body: { success: true } });
    await reaches(['/first']);
    await subscribed('/second');
    await reaches(['/first', '/second']);
    const eventType = await rest.send('POST', '/api/event-types', { name: 'order.lost' });
    expect([eventType.status, eventType.headers.get('x-error-code')]).toEqual([503, 'UNAVAILABLE']);
    await world.controlPlane.startApiServer();
    await eventually('writes to work again', 60_000, async () => {
      const { status } = await rest.send('POST', '/api/destinations', { name: 'After', url: 'https://example.com' });
      return status === 201;
    });
  }, 240_000);

  test('what was changed meanwhile is in force when it is back, deletions too', async () => {
    line.cut();
    const route = shop.route('added', 'added');
    await world.apply([shop.destination('added', added.url()), route]);
    await world.remove(shop.route('kept', 'kept'));
    await arrives(kept);
    expect(added.requests).toHaveLength(0);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    line.mend();
    // On a slow machine the leader lock may have run out meanwhile; a cluster restarts the controller.
    const isInForce = await Promise.race([world.waitUntilReady(route).then(() => true), controller.ended.then(() => false)]);
    if (!isInForce) {
      controller = world.start('controller', { kubeconfig: world.kubeconfig('controller', `https://127.0.0.1:${line.port}`) });
      await world.waitUntilReady(route);
    }
    // Ingest has the source in memory, and receives the route a moment later.
    await eventually(() => arrives(added), 90_000);
    await eventually('the deleted route to be out of force', 30_000, async () => {
      const before = kept.requests.length;
      await arrives(added);
      return kept.requests.length === before;
    });
  }, 240_000);

  test('an outage longer than the leader lock ends the leader, and the next one carries on', async () => {
    line.cut();
    expect(await controller.ended).toBe(1);
    expect(controller.output()).toMatch(/leadership is lost/);
    await arrives(added);
    line.mend();
    world.start('controller');
    const destination = shop.destination('last', added.url('/last'));
    await world.apply([destination]);
    await world.waitUntilReady(destination);
  }, 240_000);
});
