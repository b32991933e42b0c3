import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

const directory = mkdtempSync(join(tmpdir(), 'posthorn-e2e-'));
const manifests = join(directory, 'manifests');
let redis: RedisServer;
let ops: Receiver;
let receiver: Receiver;
let program: Program;
let url: string;

beforeAll(async () => {
  redis = await startRedis();
  [ops, receiver] = [await startReceiver(), await startReceiver()];
  mkdirSync(manifests);
  const object = (kind: string, name: string, spec: object, namespace?: string): string =>
    JSON.stringify({ apiVersion: 'posthorn.dev/v1alpha1', kind, metadata: { name, ...(namespace && { namespace }) }, spec });
  const http = (to: Receiver): object => ({ type: 'http', http: { url: to.url } });
  const route = (source: string, destination: string): object => ({
    sourceRef: { name: source },
    destinationRefs: [{ name: destination }],
  });
  writeFileSync(
    join(manifests, 'acme.yaml'),
    [
      object('Organization', 'acme', { namespace: 'acme', egress: { allowedCidrs: ['127.0.0.0/8'] }, limits: { monthlyMessages: 5 } }),
      object('Source', 'in', { provider: 'generic' }, 'acme'),
      object('Source', 'posthorn', { provider: 'posthorn' }, 'acme'),
      object('Destination', 'out', http(receiver), 'acme'),
      object('Destination', 'ops', http(ops), 'acme'),
      object('Route', 'all', route('in', 'out'), 'acme'),
      object('Route', 'own', route('posthorn', 'ops'), 'acme'),
    ].join('\n---\n'),
  );
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  program = startProgram(['standalone', '--manifests', manifests], {
    POSTHORN_PORT: String(port),
    POSTHORN_DATA_DIR: join(directory, 'data'),
    POSTHORN_REDIS_URL: redis.url,
    POSTHORN_SHARDS: '3',
  });
  await program.waitForOutput(/^posthorn ready /m, 60_000);
});
afterAll(async () => {
  await program?.stop();
  for (const each of [ops, receiver]) await each?.close();
  await redis?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const send = (): Promise<Response> =>
  fetch(`${url}/ingest/acme/in`, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });

test('an organization hears from its own source when it has sent 80 and 100 percent of the messages of a month', async () => {
  const published = new RedisRegistryPublisher(redis.client, 'posthorn:');
  await eventually('the routes to be published', 30_000, async () => (await published.ids('route')).length === 2);
  await eventually('the month to be used up', 30_000, async () => (await send()).status === 429);
  await receiver.arrived(5);
  await ops.arrived(2);
  const told = ops.requests.map(({ body }) => JSON.parse(body.toString()).data);
  expect(told.map(({ percent, messages, limit }) => [percent, messages, limit]).sort()).toEqual([
    [100, 5, 5],
    [80, 4, 5],
  ]);
}, 120_000);
