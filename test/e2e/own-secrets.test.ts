import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { z } from 'zod';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { eventually } from '../support/eventually.ts';
import { type Standalone, startStandalone } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

const manifests = mkdtempSync(join(tmpdir(), 'posthorn-e2e-'));
const secretOf = (byte: number): string => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;
const apiKey = `ph_${randomBytes(32).toString('base64url')}`;
let redis: RedisServer;
let ops: Receiver;
let standalone: Standalone;

/** An organization that routes own events to a receiver, and has a webhook endpoint that is signed for with this secret. */
function declare(secret: string): void {
  const spec = { namespace: 'acme', egress: { allowedCidrs: ['127.0.0.0/8'] } };
  const object = (kind: string, name: string, rest: object, apiVersion = 'posthorn.dev/v1alpha1'): string =>
    JSON.stringify({ apiVersion, kind, metadata: { name, ...(kind !== 'Organization' && { namespace: 'acme' }) }, ...rest });
  writeFileSync(
    join(manifests, 'acme.yaml'),
    [
      object('Organization', 'acme', { spec }),
      object('ApiKey', 'admin', { spec: { sha256: createHash('sha256').update(apiKey).digest('hex'), role: 'admin' } }),
      object('Source', 'posthorn', { spec: { provider: 'posthorn' } }),
      object('Destination', 'ops', { spec: { type: 'http', http: { url: ops.url } } }),
      object('Route', 'own', { spec: { sourceRef: { name: 'posthorn' }, destinationRefs: [{ name: 'ops' }] } }),
      object('Source', 'signed', { spec: { provider: 'generic', signingSecretRef: { name: 'signing', key: 'secret' } } }),
      object('Destination', 'signed', {
        spec: { type: 'http', http: { url: ops.url, signingSecretRef: { name: 'signing', key: 'secret' } } },
      }),
      object('Secret', 'signing', { stringData: { secret } }, 'v1'),
      object('WebhookApplication', 'shop', { spec: {} }),
      object('WebhookEndpoint', 'declared', {
        spec: {
          applicationRef: { name: 'shop' },
          url: 'https://declared.example/',
          signingSecretRef: { name: 'signing', key: 'secret' },
        },
      }),
    ].join('\n---\n'),
  );
}

beforeAll(async () => {
  redis = await startRedis();
  ops = await startReceiver();
  declare(secretOf(1));
  standalone = await startStandalone({
    args: ['--manifests', manifests],
    environment: { POSTHORN_SHARDS: '3', POSTHORN_REDIS_URL: redis.url },
  });
});
afterAll(async () => {
  await standalone?.stop();
  await ops?.close();
  await redis?.stop();
  rmSync(manifests, { recursive: true, force: true });
});

const told = () => ops.requests.map(({ body }) => JSON.parse(body.toString()));

/** Repeats the request until the objects that it needs are in force. */
async function post(path: string, body: object, key?: string): Promise<Record<string, unknown>> {
  return await eventually(path, 30_000, async () => {
    const answer = await fetch(`${standalone.url}/api/${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/json',
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      body: JSON.stringify(body),
    });
    expect(answer.ok).toBe(true);
    return z.record(z.string(), z.unknown()).parse(await answer.json());
  });
}
const idOf = (answer: Record<string, unknown>): string => z.object({ data: z.object({ id: z.string() }) }).parse(answer).data.id;

test('an organization hears from its own source, once, of each secret that is rotated through the API and through a Secret', async () => {
  const applicationId = idOf(await post('webhook-applications', { name: 'Customer' }));
  const endpointId = idOf(await post('webhook-endpoints', { applicationId, url: 'https://customer.example/' }));
  const published = new RedisRegistryPublisher(redis.client, 'posthorn:');
  await eventually('the route to be published', 30_000, async () => (await published.ids('route')).length === 1);
  const rotated = await post(`webhook-endpoints/${endpointId}/rotate-secret`, {}, 'once');
  expect(await post(`webhook-endpoints/${endpointId}/rotate-secret`, {}, 'once')).toEqual(rotated);
  await ops.arrived(1);
  declare(secretOf(2));
  await ops.arrived(4);
  const of = (by: string, previousSecretExpiresAt: unknown) =>
    expect.objectContaining({ kind: 'endpoint', by, secretVersion: 2, previousSecretExpiresAt });
  expect(told().map(({ type }) => type)).toEqual(Array(4).fill('secret.rotated'));
  const [first, ...declared] = told().map(({ data }) => data);
  expect(first).toEqual(of('api', rotated['previousSecretExpiresAt']));
  expect(declared.sort((a, b) => (a.kind < b.kind ? -1 : 1))).toEqual([
    expect.objectContaining({
      kind: 'destination',
      destinationId: expect.any(String),
      by: 'posthorn-manifests',
      previousSecretExpiresAt: null,
    }),
    of('resource', null),
    expect.objectContaining({ kind: 'source', sourceId: expect.any(String), by: 'posthorn-manifests', previousSecretExpiresAt: null }),
  ]);
  const made = await post('sources', { name: 'made', provider: 'generic', signingSecret: 'the first one' });
  const sourceId = z.string().parse(made['id']);
  const { previousSecretExpiresAt } = await post(`sources/${sourceId}/rotate-secret`, { gracePeriodSeconds: 60 });
  await ops.arrived(5);
  expect(told()[4].data).toEqual({
    kind: 'source',
    sourceId,
    by: 'posthorn-api',
    rotatedAt: told()[4].occurredAt,
    previousSecretExpiresAt,
  });
  for (const { body } of ops.requests) expect(body.toString()).not.toContain('the first one');
  for (const { body } of ops.requests) expect(body.toString()).not.toContain('whsec_');
}, 120_000);
