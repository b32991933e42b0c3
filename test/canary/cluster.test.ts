import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { isRecord } from '../../src/resources/field-tree.ts';
import { configurationKinds, type Kind, kindPath } from '../../src/resources/kinds.ts';
import { list, members, type Schema } from '../contract/described-operations.ts';
import { type ControlPlaneWorld, startControlPlaneWorld } from '../e2e/control-plane-world.ts';
import { ingest, RestClient } from '../e2e/rest.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import type { Program } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { canariesInRedis } from './canaries-in-redis.ts';
import { type Canary, found, newCanary } from './canary.ts';
import { customer, type SecretHolder, secretHolders } from './manifests.ts';

const apiVersion = 'posthorn.dev/v1alpha1';
const canaries: Canary[] = [];
const answers: string[] = [];
let world: ControlPlaneWorld;
let receivers: { ok: Receiver; failing: Receiver };
let roles: { program: Program; opsPort: number }[];
let holders: SecretHolder[];
let url: string;
let ingestUrl: string;
let rest: RestClient;

const put = (field: string, name: string, options: { malformed?: boolean } = {}): string => {
  const canary = newCanary(field, name, options);
  canaries.push(canary);
  return canary.value;
};
const applyAt = (path: string, object: object): Promise<unknown> =>
  world.controlPlane.request('PATCH', `${path}?fieldManager=kubectl&force=true`, object, 'application/apply-patch+yaml');
const applyResource = (kind: Kind, name: string, spec: unknown): Promise<unknown> => {
  const { root, plural } = kindPath(kind);
  const object = { apiVersion, kind, metadata: { name, namespace: 'default' }, spec };
  return applyAt(`${root}/namespaces/default/${plural}/${name}`, object);
};
const send = async (method: 'GET' | 'POST' | 'PATCH', path: string, body?: object): Promise<Schema> => {
  const answer = await rest.send(method, path, body);
  answers.push(JSON.stringify([path, answer.body, [...answer.headers]]));
  return members(answer.body);
};
/** Every object of a list of the API server. */
const itemsAt = async (path: string): Promise<Schema[]> =>
  list(members(await world.controlPlane.request('GET', path))['items']).map(members);
const resources = async (): Promise<Schema[]> => {
  const paths = configurationKinds.map(kindPath).map(({ root, plural }) => `${root}/${plural}`);
  return (await Promise.all(paths.map(itemsAt))).flat();
};

beforeAll(async () => {
  receivers = { ok: await startReceiver(), failing: await startReceiver((response) => void response.writeHead(500).end('no')) };
  world = await startControlPlaneWorld();
  const ports = { api: await freePort(), ingest: await freePort() };
  url = `http://127.0.0.1:${ports.api}`;
  ingestUrl = `http://127.0.0.1:${ports.ingest}`;
  const environment = { POSTHORN_LOG_LEVEL: 'debug', POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true' };
  roles = await Promise.all(
    (['controller', 'api', 'ingest', 'delivery'] as const).map(async (role) => {
      const opsPort = await freePort();
      return {
        program: world.start(role, { opsPort, environment, ...((role === 'api' || role === 'ingest') && { port: ports[role] }) }),
        opsPort,
      };
    }),
  );
  await applyManifests();
  await eventually('api and ingest to be ready', 60_000, async () =>
    (await Promise.all([url, ingestUrl].map((each) => fetch(`${each}/readyz`)))).every(({ ok }) => ok),
  );
  await eventually(async () => {
    const others = (await resources()).filter((each) => !isJudged(each));
    expect(others.map(({ kind, metadata }) => [kind, members(metadata)['name']])).toEqual([]);
  }, 150_000);
  await changeThroughApi();
  await makeItWork();
}, 400_000);
afterAll(async () => {
  await Promise.all([receivers?.ok.close(), receivers?.failing.close()]);
  await world?.stop();
});

async function applyManifests(): Promise<void> {
  const organization = {
    apiVersion,
    kind: 'Organization',
    metadata: { name: 'default' },
    spec: { namespace: 'default', egress: { allowedCidrs: ['127.0.0.0/8'] } },
  } as const;
  await world.apply([organization]);
  await world.waitUntilReady(organization);
  const apiKey = `ph_${put('API key', 'apiKey')}`;
  rest = new RestClient(url, apiKey);
  const sha256 = createHash('sha256').update(apiKey).digest('hex');
  holders = await secretHolders(put, [receivers.ok.url, receivers.failing.url]);
  await world.apply([
    { apiVersion, kind: 'ApiKey', metadata: { name: 'canary', namespace: 'default' }, spec: { sha256, role: 'admin' } },
    { apiVersion, kind: 'Source', metadata: { name: 'events', namespace: 'default' }, spec: {} },
  ]);
  await applyResource(customer.kind, customer.metadata.name, customer.spec);
  for (const { name, secret } of holders) await applyAt(`/api/v1/namespaces/default/secrets/${name}`, secret);
  for (const { kind, name, object } of holders) await applyResource(kind, name, object['spec']);
  for (const { name } of holders.filter(({ kind }) => kind === 'Destination')) {
    await applyResource('Route', `to-${name}`, { sourceRef: { name: 'events' }, destinationRefs: [{ name }] });
  }
}

function isJudged({ metadata, status }: Schema): boolean {
  const conditions = list(members(status)['conditions']).map(members);
  return conditions.some((each) => each['type'] === 'Ready' && each['observedGeneration'] === members(metadata)['generation']);
}

/** Secrets that Posthorn itself writes into Secrets of Kubernetes. */
async function changeThroughApi(): Promise<void> {
  const token = put('POST /destinations token', 'token');
  await send('POST', '/api/destinations', {
    name: 'Made',
    url: receivers.failing.url,
    authType: 'bearer',
    authConfig: { token },
    signingSecret: put('POST /destinations signingSecret', 'signingSecret'),
  });
  await send('PATCH', '/api/destinations/made', { authType: 'bearer', authConfig: { token: put('PATCH /destinations token', 'token') } });
  const signingSecret = put('POST /sources signingSecret', 'signingSecret');
  await send('POST', '/api/sources', { name: 'Signed', provider: 'standard-webhooks', signingSecret });
  const next = put('POST /sources/{id}/rotate-secret signingSecret', 'signingSecret');
  expect((await rest.send('POST', '/api/sources/signed/rotate-secret', { signingSecret: next })).status).toBe(200);
  await send('POST', '/api/routes', { name: 'To made', sourceId: 'events', destinationIds: ['made'] });
}

/** Deliveries that succeed and fail, and tests of everything. */
async function makeItWork(): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  expect((await ingest(ingestUrl, 'default/events', { headers, body: Buffer.from('{"n":1}') })).status).toBe(200);
  await Promise.all([receivers.ok.arrived(1, 30_000), receivers.failing.arrived(1, 30_000)]);
  const tested = holders.filter(({ kind }) => kind === 'Destination' || kind === 'NotificationChannel');
  await Promise.all(
    tested.map(({ kind, name }) => send('POST', `/api/${kind === 'Destination' ? 'destinations' : 'notification-channels'}/${name}/test`)),
  );
  for (const path of ['destinations', 'sources', 'notification-channels', 'events', 'routes', 'destinations/export'])
    await send('GET', `/api/${path}`);
}

describe('a secret that is put into every field of custom resources for one', () => {
  test('a secret that is put into every field of custom resources for one is in force where it has the right form, and delivered to those it is for', async () => {
    expect(holders.length).toBeGreaterThan(10);
    const fields = ['Destination spec.http.auth.tokenSecretRef', 'PATCH /destinations token'];
    const awaited = ['"webhook-signature":"v1,', ...fields.map((field) => canaries.find((each) => each.field === field)?.value ?? '-')];
    await eventually('deliveries with credentials and signatures', 30_000, () => {
      const received = JSON.stringify([...receivers.ok.requests, ...receivers.failing.requests].map(({ headers }) => headers));
      return awaited.every((each) => received.includes(each));
    });
    const notInForce = (await resources()).filter(({ metadata, status }) => {
      const ready = list(members(status)['conditions'])
        .map(members)
        .find(({ type }) => type === 'Ready');
      const index = Number(String(members(metadata)['name']).replace('canary-', ''));
      return index < holders.length / 2 && ready?.['status'] !== 'True';
    });
    expect(notInForce.map(({ kind, metadata, status }) => [kind, members(metadata)['name'], members(status)['conditions']])).toEqual([]);
  });

  test('a secret that is put into every field of custom resources for one is in no custom resource and in its status neither', async () => {
    const all = await resources();
    expect(JSON.stringify(all)).toContain('"status":"False"');
    expect(all.flatMap((each) => found(canaries, Buffer.from(JSON.stringify(each))))).toEqual([]);
  });

  test('a secret that is put into every field of custom resources for one is in no Event of Kubernetes', async () => {
    const events = await eventually('events of broken resources', 30_000, async () => {
      const items = await itemsAt('/api/v1/events');
      return items.some(({ reason }) => reason === 'InvalidWebhookUrl') ? items : undefined;
    });
    expect(events.length).toBeGreaterThan(5);
    expect(events.flatMap((each) => found(canaries, Buffer.from(JSON.stringify(each))))).toEqual([]);
  });

  test('a secret that is put into every field of custom resources for one is in no Secret but those that people wrote, for Posthorn seals its own', async () => {
    const own = (await itemsAt('/api/v1/secrets')).filter(({ metadata }) => !/^canary-/.test(String(members(metadata)['name'])));
    const values = own.flatMap(({ data }) => (isRecord(data) ? Object.values(data) : []));
    expect(values.length).toBeGreaterThanOrEqual(4);
    expect(values.flatMap((each) => found(canaries, Buffer.from(String(each), 'base64')))).toEqual([]);
  });

  test('a secret that is put into every field of custom resources for one is in no answer of the API, no line of the logs of any role, at any level, and no metric', async () => {
    expect(answers.flatMap((answer) => found(canaries, Buffer.from(answer)))).toEqual([]);
    for (const { program, opsPort } of roles) {
      expect(program.output()).toMatch(/"level":"?(20|debug)/);
      expect(found(canaries, Buffer.from(program.output()))).toEqual([]);
      const metrics = await fetch(`http://127.0.0.1:${opsPort}/metrics`);
      expect(found(canaries, Buffer.from(await metrics.text()))).toEqual([]);
    }
  });

  test('a secret that is put into every field of custom resources for one is in no value of Redis', async () => {
    const { keys, found: inKeys } = await canariesInRedis(world.redis.client, canaries);
    expect(inKeys).toEqual([]);
    expect(keys).toBeGreaterThan(30);
  });
});
