import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { z } from 'zod';
import { hopHeader, maxHops } from '../../src/core/hops.ts';
import { eventually } from '../support/eventually.ts';
import { type Standalone, startStandalone } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';

const manifests = mkdtempSync(join(tmpdir(), 'posthorn-e2e-'));
const apiKey = `ph_${randomBytes(32).toString('base64url')}`;
let redis: RedisServer;
let customer: Receiver;
let standalone: Standalone;

/** An organization whose own events are sent to its endpoints by send-event, to which `api` leads, and so to an endpoint that fails. */
function declare(api: string): void {
  const object = (kind: string, name: string, rest: object, apiVersion = 'posthorn.dev/v1alpha1'): string =>
    JSON.stringify({ apiVersion, kind, metadata: { name, ...(kind !== 'Organization' && { namespace: 'acme' }) }, ...rest });
  const sha256 = createHash('sha256').update(apiKey).digest('hex');
  const code = "(event) => ({ eventType: 'posthorn', payload: event.payload })";
  const auth = { type: 'bearer', tokenSecretRef: { name: 'api', key: 'token' } };
  writeFileSync(
    join(manifests, 'acme.yaml'),
    [
      object('Organization', 'acme', { spec: { namespace: 'acme', egress: { allowedCidrs: ['127.0.0.0/8'] } } }),
      object('ApiKey', 'admin', { spec: { sha256, role: 'admin' } }),
      object('Source', 'posthorn', { spec: { provider: 'posthorn' } }),
      object('Secret', 'api', { stringData: { token: apiKey } }, 'v1'),
      object('Transform', 'sent', { spec: { type: 'javascript', code } }),
      object('Destination', 'again', {
        spec: { type: 'http', http: { url: `${api}/api/send-event`, auth }, retryPolicy: { maxRetries: 0 } },
      }),
      object('Route', 'own', {
        spec: { sourceRef: { name: 'posthorn' }, destinationRefs: [{ name: 'again' }], transformRef: { name: 'sent' } },
      }),
      object('WebhookEventType', 'posthorn', { spec: { name: 'posthorn' } }),
      object('WebhookApplication', 'shop', { spec: {} }),
      object('WebhookEndpoint', 'failing', {
        spec: {
          applicationRef: { name: 'shop' },
          url: customer.url,
          retryDelaysSeconds: [1],
          circuit: { failureThreshold: 1000 },
          signingSecretRef: { name: 'signing', key: 'secret' },
        },
      }),
      object('Secret', 'signing', { stringData: { secret: `whsec_${Buffer.alloc(32, 1).toString('base64')}` } }, 'v1'),
      object('WebhookSubscription', 'all', { spec: { endpointRef: { name: 'failing' }, eventTypeRef: { name: 'posthorn' } } }),
    ].join('\n---\n'),
  );
}

beforeAll(async () => {
  redis = await startRedis();
  customer = await startReceiver((response) => response.writeHead(500).end());
  declare('http://127.0.0.1:9');
  standalone = await startStandalone({
    args: ['--manifests', manifests],
    environment: { POSTHORN_SHARDS: '3', POSTHORN_REDIS_URL: redis.url, POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true' },
  });
  declare(standalone.url);
}, 120_000);
afterAll(async () => {
  await standalone?.stop();
  await customer?.close();
  await redis?.stop();
  rmSync(manifests, { recursive: true, force: true });
});

async function call(path: string, body?: object): Promise<unknown> {
  const answer = await fetch(`${standalone.url}/api/${path}`, {
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  });
  expect(answer.ok).toBe(true);
  return await answer.json();
}

test('a loop over send-event and an endpoint that fails ends after the hops that an event may have', async () => {
  const event = { eventType: 'posthorn', payload: {} };
  const sent = z.object({ data: z.object({ messagesQueued: z.int() }) });
  await eventually(async () => expect(JSON.stringify(await call('destinations'))).toContain(standalone.url));
  // The API shows the resource before its record is published.
  await eventually(async () => expect(String(await redis.client.hvals('posthorn:{cfg}:rec:destination'))).toContain(standalone.url));
  await eventually(async () => expect(sent.parse(await call('send-event', event)).data.messagesQueued).toBe(1));
  const hopsSeen = (): (string | undefined)[] => [...new Set(customer.requests.map(({ headers }) => headers[hopHeader]?.toString()))];
  const lastHop = String(maxHops + 1);
  await eventually(() => expect(hopsSeen()).toContain(lastHop), 60_000);
  // Each is tried twice.
  await eventually(() => expect(customer.requests.length).toBeGreaterThanOrEqual(2 * (1 + maxHops)), 60_000);
  await sleep(4000);
  const messages = new Set(customer.requests.map(({ headers }) => headers['webhook-id']));
  // The first message has none; the own event about it begins at 0, and two deliveries add one each.
  expect(hopsSeen()).toEqual([undefined, ...Array.from({ length: maxHops }, (_, i) => String(i + 2))]);
  expect(messages.size).toBe(1 + maxHops);
  expect(customer.requests).toHaveLength(2 * messages.size);
}, 180_000);
