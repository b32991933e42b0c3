import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { type ControlPlaneWorld, startControlPlaneWorld } from '../e2e/control-plane-world.ts';
import { githubDeliveryOf } from '../e2e/github.ts';
import { Shop } from '../e2e/manifests.ts';
import { ingest, RestClient } from '../e2e/rest.ts';
import type { Manifest } from '../e2e/world.ts';
import { kubernetesAssets } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { startTlsReceiver, type TlsReceiver } from '../support/tls-receiver.ts';

const run = promisify(execFile);
const manager = 'argocd';
const roundMs = 1000;

const entry = z.looseObject({ manager: z.string(), subresource: z.string().optional() });
const stored = z.looseObject({
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), generation: z.int(), resourceVersion: z.string(), managedFields: z.array(entry) }),
  spec: z.looseObject({}),
  status: z.looseObject({ circuit: z.looseObject({ state: z.string() }).optional() }).optional(),
});
type Stored = z.output<typeof stored>;

describe('resources that a Git-like loop applies', () => {
  const shop = new Shop('gitops');
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-gitops-'));
  const file = join(directory, 'manifests.json');
  let world: ControlPlaneWorld;
  let rest: RestClient;
  let url: string;
  let ingestUrl: string;
  let receiver: TlsReceiver;
  let inGit: Manifest[];

  const kubectl = async (...args: string[]): Promise<string> => {
    const kubeconfig = ['--kubeconfig', world.controlPlane.kubeconfigPath];
    return (await run(join(kubernetesAssets(), 'kubectl'), [...kubeconfig, ...args], { timeout: 60_000 })).stdout;
  };
  /** As Argo CD and Flux do; without force, so that it fails when another manager has taken a field. */
  const sync = () => kubectl('apply', '--server-side', `--field-manager=${manager}`, '-f', file);
  /** What the manifests have become, by kind and name. */
  const read = async (): Promise<Map<string, Stored>> => {
    const list = JSON.parse(await kubectl('get', '-f', file, '-o', 'json', '--show-managed-fields'));
    return new Map(
      z
        .array(stored)
        .parse(list.items)
        .map((object) => [`${object.kind} ${object.metadata.name}`, object]),
    );
  };
  const managersOf = ({ metadata }: Stored): string[] =>
    metadata.managedFields.map(({ manager: who, subresource }) => (subresource === undefined ? who : `${who} ${subresource}`)).sort();
  const fieldsOfGit = ({ metadata }: Stored): unknown => metadata.managedFields.filter(({ manager: who }) => who === manager);

  beforeAll(async () => {
    world = await startControlPlaneWorld();
    receiver = await startTlsReceiver({
      tls: world.authority.issue(['127.0.0.1']),
      address: '127.0.0.1',
      respond: ({ path }) => (path === '/failing' ? 500 : 200),
    });
    const [port, ingestPort] = [await freePort(), await freePort()];
    url = `http://127.0.0.1:${port}`;
    ingestUrl = `http://127.0.0.1:${ingestPort}`;
    rest = new RestClient(url, shop.apiKey);
    world.start('controller');
    world.start('api', { port });
    world.start('ingest', { port: ingestPort });
    world.start('delivery');
    const organization = shop.organization(['127.0.0.0/8']);
    await world.apply([organization]);
    await world.waitUntilReady(organization);
    await world.apply([...shop.secrets, shop.apiKeyManifest]);
    const failing: Manifest = {
      ...shop.route('failing', 'failing'),
      spec: { sourceRef: { name: 'github' }, destinationRefs: [{ name: 'failing' }], circuit: { failureThreshold: 2, cooldownSeconds: 1 } },
    };
    inGit = [
      shop.source,
      shop.destination('working', receiver.url('/working')),
      shop.destination('failing', receiver.url('/failing')),
      shop.route('working', 'working'),
      failing,
    ];
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: inGit }));
    await sync();
    for (const manifest of [...inGit, shop.apiKeyManifest]) await world.waitUntilReady(manifest);
    await eventually('the api to be ready', 60_000, async () => (await fetch(`${url}/readyz`)).ok);
  }, 180_000);
  afterAll(async () => {
    await receiver?.stop();
    await world?.stop();
    rmSync(directory, { recursive: true });
  }, 60_000);

  test('resources that a Git-like loop applies stay as they are, to the resourceVersion, when they are applied again, and a diff of them is empty', async () => {
    const before = await read();
    for (let round = 0; round < 3; round++) await sync();
    expect(await kubectl('diff', '--server-side', `--field-manager=${manager}`, '-f', file)).toBe('');
    // By now the controllers would have repeated any periodic write.
    await sleep(roundMs);
    expect(await read()).toEqual(before);
  }, 120_000);

  test('every second while the API writes beside them and circuits open are not fought over: no generation grows but by the writes of the API', async () => {
    const before = await read();
    const rounds = 5;
    for (let round = 1; round <= rounds; round++) {
      const began = performance.now();
      await sync();
      expect((await rest.send('PATCH', '/api/routes/failing', { priority: round })).status).toBe(200);
      const refused = await rest.send('PATCH', '/api/destinations/failing', { url: receiver.url('/elsewhere') });
      expect(refused).toMatchObject({ status: 409, body: { code: 'FIELD_MANAGED', message: expect.stringContaining(manager) } });
      expect((await ingest(ingestUrl, `${shop.name}/github`, githubDeliveryOf('push', shop.githubSecret))).status).toBe(200);
      await sleep(Math.max(0, began + roundMs - performance.now()));
    }
    await eventually('the circuit to be shown', 60_000, async () => {
      const state = (await read()).get('Route failing')?.status?.circuit?.state;
      return state === undefined || state === 'closed' ? undefined : true;
    });
    await sync();
    const after = await read();
    for (const untouched of ['Source github', 'Destination working', 'Route working'])
      expect(after.get(untouched)).toEqual(before.get(untouched));
    for (const [name, object] of after) {
      const { generation = 0 } = before.get(name)?.metadata ?? {};
      expect([name, object.metadata.generation]).toEqual([name, generation + (name === 'Route failing' ? rounds : 0)]);
      expect(fieldsOfGit(object)).toEqual(fieldsOfGit(before.get(name) ?? object));
      expect(new Set(managersOf(object)).size).toBe(managersOf(object).length);
    }
    expect(after.get('Route failing')?.spec).toMatchObject({ priority: rounds, circuit: { failureThreshold: 2, cooldownSeconds: 1 } });
    expect(await kubectl('diff', '--server-side', `--field-manager=${manager}`, '-f', file)).toBe('');
  }, 120_000);

  test('resources that a Git-like loop applies of every kind show no difference to what kubectl apply has been given, our samples with all their fields', async () => {
    const samples = globSync('config/samples/*.yaml', { cwd: new URL('../../', import.meta.url).pathname });
    const files = samples.sort().flatMap((name) => ['-f', new URL(`../../${name}`, import.meta.url).pathname]);
    await world.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'acme' } }]);
    await kubectl('apply', ...files);
    expect(await kubectl('diff', ...files)).toBe('');
    // With what the controllers have added since.
    const wait = ['wait', '--for=condition=Ready', '--timeout=60s', '-n', 'acme'];
    await kubectl(...wait, 'filter/main-branch', 'webhookapplication/shop-17');
    expect(await kubectl('diff', ...files)).toBe('');
  }, 180_000);

  test('resources that a Git-like loop applies need no permission that the roles do not have', () => {
    expect(world.forbidden()).toEqual([]);
  });
});
