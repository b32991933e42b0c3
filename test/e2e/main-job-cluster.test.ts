import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { consoleSteps } from '../support/console-steps.ts';
import { eventually } from '../support/eventually.ts';
import { describeInCluster } from '../support/in-cluster.ts';
import { freePort } from '../support/ports.ts';
import { type ClusterWorld, startClusterWorld, startInstalledWorld } from './cluster-world.ts';
import { githubDeliveryOf } from './github.ts';
import { kubectl } from './kubectl.ts';
import { describeMainJob } from './main-job.ts';
import { Shop } from './manifests.ts';
import { ingest, RestClient } from './rest.ts';

const root = new URL('../../', import.meta.url).pathname;

describeInCluster('the cluster of hack/test', () => {
  describeMainJob('the cluster', startClusterWorld);
  describeKubernetes();
});

function describeKubernetes(): void {
  describe('Posthorn in Kubernetes', () => {
    const shop = new Shop(`acme-${randomBytes(3).toString('hex')}`);
    const namespaced = (...args: string[]) => kubectl(['-n', shop.name, ...args]);
    let world: ClusterWorld;
    let rest: RestClient;

    beforeAll(async () => {
      world = await startInstalledWorld();
      rest = new RestClient(world.url, shop.apiKey);
      await world.apply([shop.organization([])]);
      await world.waitUntilReady(shop.organization([]));
      const destination = shop.destination('billing', 'https://billing.example.com/hooks');
      const resources = [...shop.secrets, shop.apiKeyManifest, shop.source, destination, shop.route('billing', 'billing')];
      await world.apply(resources);
      for (const resource of resources.filter(({ apiVersion }) => apiVersion !== 'v1')) await world.waitUntilReady(resource);
    }, 300_000);
    afterAll(async () => {
      await world?.stop();
    });

    test('kubectl get shows what an operator asks first', async () => {
      const routes = await namespaced('get', 'routes');
      expect(routes.split('\n')[0]?.split(/\s{2,}/)).toEqual(['NAME', 'READY', 'REASON', 'SOURCE', 'ENABLED', 'CIRCUIT', 'AGE']);
      expect(routes).toMatch(/^billing\s+True\s+\S+\s+github\s/m);
      expect(await namespaced('get', 'dest', '-o', 'wide')).toContain('https://billing.example.com/hooks');
      expect(await kubectl(['get', 'posthorn', '-n', shop.name, '-o', 'name'])).toContain('route.posthorn.dev/billing');
    });

    test('a route made by kubectl is visible in the API, and the other way round', async () => {
      // The server follows what the controller writes.
      const route = await eventually('the route in the API', 60_000, async () => {
        const listed = await rest.send('GET', '/api/routes');
        return listed.body.data.find((each: { name: string }) => each.name === 'billing');
      });
      const { body: destinations } = await rest.send('GET', '/api/destinations');
      const made = await rest.send('POST', '/api/destinations', { name: 'Made by API', url: 'https://api.example.com/hooks' });
      expect(made.status).toBe(201);
      const created = await rest.send('POST', '/api/routes', {
        name: 'Made by API',
        sourceId: route.sourceId,
        destinationIds: [made.body.id],
      });
      expect(created.status).toBe(201);
      expect(destinations.data).toHaveLength(1);
      // The response of the API does not wait longer than two seconds for the controller.
      const inKubernetes = await eventually('the id in the status of the route', 60_000, async () =>
        JSON.parse(await namespaced('get', 'routes', '-o', 'json')).items.find(
          (item: { status?: { id?: string } }) => item.status?.id === created.body.id,
        ),
      );
      expect(inKubernetes?.spec.name).toBe('Made by API');
      await kubectl(['-n', shop.name, 'wait', '--for=condition=Ready', `route/${inKubernetes.metadata.name}`, '--timeout=60s']);
    });

    test('the API refuses to write a field that Git owns, names the owner, and changes nothing', async () => {
      const { body } = await rest.send('GET', '/api/destinations/billing');
      const refused = await rest.send('PATCH', `/api/destinations/${body.id}`, { url: 'https://elsewhere.example.com' });
      expect(refused).toMatchObject({
        status: 409,
        body: { error: 'Conflict', code: 'FIELD_MANAGED', message: expect.stringContaining('kubectl') },
      });
      expect((await rest.send('GET', '/api/destinations/billing')).body.url).toBe('https://billing.example.com/hooks');
      expect((await rest.send('PATCH', `/api/destinations/${body.id}`, { url: body.url })).status).toBe(200);
    });

    test('the steps of the README deliver its first event', async () => {
      const [, ...steps] = consoleSteps('README.md', 'In Kubernetes');
      const script = steps.join('\n').replaceAll('8081', String(await freePort()));
      const { stdout } = await promisify(execFile)('bash', ['-ec', `trap 'kill $!' EXIT\n${script}`], { cwd: root, timeout: 300_000 });
      expect(stdout).toContain('{"success":true,"eventId":"evt_');
      await eventually(async () => {
        const log = await kubectl(['-n', 'quickstart', 'logs', 'deployment/receiver']);
        for (const path of ['/orders', '/large-orders'])
          expect(log).toMatch(new RegExp(`received POST ${path} webhook-id=msg_\\S+ signature=valid {"order":7,"total":1200}`));
      }, 90_000);
      await kubectl(['delete', 'organizations.posthorn.dev/quickstart', 'namespace/quickstart', '--timeout=90s']);
    }, 600_000);

    test('deleting the organization and its namespace leaves no key of theirs in Redis', async () => {
      const { body } = await ingest(world.ingestUrl, `${shop.name}/github`, githubDeliveryOf('push', shop.githubSecret));
      const organization = JSON.parse(await kubectl(['get', 'organization', shop.name, '-o', 'json']));
      const resources = JSON.parse(await namespaced('get', 'sources,destinations,routes,filters,apikeys', '-o', 'json')).items;
      const ids = [organization, ...resources].map((item: { status: { id: string } }) => item.status.id);
      // Keys hold ids without their prefix, and those of events without their shard.
      const texts = [shop.name, ...ids.map((id) => id.slice(id.indexOf('_') + 1)), String(body.eventId).slice('evt_00'.length)];
      expect((await traces(world, texts)).length).toBeGreaterThan(10);
      await kubectl(['delete', 'organization', shop.name, '--wait=true', '--timeout=90s']);
      await kubectl(['delete', 'namespace', shop.name, '--ignore-not-found', '--wait=true', '--timeout=90s']);
      await eventually(async () => expect(await traces(world, texts)).toEqual([]), 90_000);
    }, 400_000);
  });
}

/** Keys, fields, members and values in Redis that mention one of the texts. */
async function traces(world: ClusterWorld, texts: readonly string[]): Promise<string[]> {
  const script = readFileSync(new URL('./traces.lua', import.meta.url), 'utf8');
  const output = await world.redis('EVAL', script, '0', ...texts);
  return output.split('\n').filter((line) => line.trim() !== '');
}
