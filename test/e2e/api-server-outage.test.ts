import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type CuttableLine, startCuttableLine } from '../support/cuttable-line.ts';
import { freePort } from '../support/ports.ts';
import type { Program } from '../support/program.ts';
import { startTlsReceiver, type TlsReceiver } from '../support/tls-receiver.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type ControlPlaneWorld, startControlPlaneWorld } from './control-plane-world.ts';
import { githubDeliveryOf } from './github.ts';
import { Shop } from './manifests.ts';
import { ingest, RestClient } from './rest.ts';

describe('without the API server', () => {
  const shop = new Shop('outage');
  let world: ControlPlaneWorld;
  let line: CuttableLine;
  let url: string;
  let rest: RestClient;
  let kept: TlsReceiver;
  let added: TlsReceiver;
  let programs: Program[];

  const send = (event = 'push') => ingest(url, 'outage/github', githubDeliveryOf(event, shop.githubSecret));
  const arrives = async (receiver: TlsReceiver): Promise<void> => {
    const before = receiver.requests.length;
    expect((await send()).status).toBe(200);
    await receiver.waitForRequests(before + 1, 10_000);
  };

  beforeAll(async () => {
    world = await startControlPlaneWorld();
    const tls = world.authority.issue(['127.0.0.1']);
    kept = await startTlsReceiver({ tls, address: '127.0.0.1' });
    added = await startTlsReceiver({ tls, address: '127.0.0.1' });
    const { hostname, port } = new URL(world.controlPlane.url);
    line = await startCuttableLine({ host: hostname, port: Number(port) });
    const kubeconfig = world.controlPlane.writeKubeconfig({ server: `https://127.0.0.1:${line.port}` });
    const apiPort = await freePort();
    url = `http://127.0.0.1:${apiPort}`;
    rest = new RestClient(url, shop.apiKey);
    programs = [world.start('controller', { kubeconfig }), world.start('api', { kubeconfig, port: apiPort }), world.start('delivery')];
    const organization = shop.organization(['127.0.0.0/8']);
    await world.apply([organization]);
    await world.waitUntilReady(organization);
    const resources = [...shop.secrets, shop.apiKeyManifest, shop.source, shop.destination('kept', kept.url()), shop.route('kept', 'kept')];
    await world.apply(resources);
    for (const resource of resources.filter(({ apiVersion }) => apiVersion !== 'v1')) await world.waitUntilReady(resource);
    await waitUntil('the api to be ready', 30_000, async () => ((await fetch(`${url}/readyz`)).ok ? true : undefined));
    await arrives(kept);
  }, 180_000);
  afterAll(async () => {
    await line?.stop();
    await Promise.all([kept, added].map((receiver) => receiver?.stop()));
    await world?.stop();
  }, 60_000);

  test('ingest and delivery go on, and reads of the API too', async () => {
    await world.controlPlane.stopApiServer();
    for (let i = 0; i < 5; i++) await arrives(kept);
    expect((await rest.send('GET', '/api/events')).status).toBe(200);
    expect((await rest.send('GET', '/api/routes')).body.data).toHaveLength(1);
    const write = await rest.send('POST', '/api/destinations', { name: 'x', url: 'https://example.com' });
    expect(write).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    await world.controlPlane.startApiServer();
    await waitUntil('writes to work again', 30_000, async () => {
      const { status } = await rest.send('POST', '/api/destinations', { name: 'After', url: 'https://example.com' });
      return status === 201 ? true : undefined;
    });
  }, 120_000);

  test('what was changed meanwhile is in force when it is back, deletions too', async () => {
    line.cut();
    const route = shop.route('added', 'added');
    await world.apply([shop.destination('added', added.url()), route]);
    await world.remove(shop.route('kept', 'kept'));
    await arrives(kept);
    expect(added.requests).toHaveLength(0);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    line.mend();
    await world.waitUntilReady(route);
    await arrives(added);
    await waitUntil('the deleted route to be out of force', 15_000, async () => {
      const before = kept.requests.length;
      await arrives(added);
      return kept.requests.length === before ? true : undefined;
    });
  }, 120_000);

  test('an outage longer than the leader lock ends the leader, and the next one carries on', async () => {
    const [controller] = programs;
    line.cut();
    expect(await controller?.ended).toBe(1);
    expect(controller?.output()).toMatch(/leadership is lost/);
    await arrives(added);
    line.mend();
    world.start('controller');
    const destination = shop.destination('last', added.url('/last'));
    await world.apply([destination]);
    await world.waitUntilReady(destination);
  }, 120_000);
});
