import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { alertOrganization } from '../../src/core/alert.ts';
import { RedisMessageReader } from '../../src/data/history/message-reader.ts';
import { detailField, type ShownAttemptDetail } from '../../src/data/shard/shown-attempt-detail.ts';
import { canariesInRedis } from '../canary/canaries-in-redis.ts';
import { newCanary } from '../canary/canary.ts';
import { startAlertingWorker } from '../support/alerting-worker.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

/** What is kept of a request of each kind of sender, at a receiver with a name and TLS that refuses it and repeats its credential. */
let world: FacadeWorld;
let authority: CertificateAuthority;
let receiver: Receiver;
let stopWorker: () => Promise<void>;
let org: string;
const canary = newCanary('Authorization', 'headerValue');
const authorization = `Bearer ${canary.value}`;
beforeAll(async () => {
  authority = createCertificateAuthority();
  receiver = await startReceiver(
    (response, _, { headers }) => response.writeHead(500, { 'x-step': '7', 'x-repeated': String(headers.authorization) }).end('broken'),
    authority.issue(['receiver.example']),
  );
  world = await startFacadeWorld();
  org = await world.organizationId('acme');
  stopWorker = startAlertingWorker(world.redis, {
    prefix: 'test:',
    registry: world.registry,
    lookup: (_, __, callback) => setImmediate(callback, null, [{ address: '127.0.0.1', family: 4 }]),
    extraCa: authority.text,
  });
});
afterAll(async () => {
  await stopWorker?.();
  await Promise.all([world?.stop(), receiver?.close()]);
  authority?.remove();
});

const portOf = () => new URL(receiver.url).port;
const url = () => `https://receiver.example:${portOf()}/hook`;
const call = async (method: string, path: string, body?: object) => (await world.request(method, `/api/${path}`, { body })).body;
const destination = () =>
  world.create('destinations', {
    url: url(),
    authType: 'bearer',
    authConfig: { token: canary.value },
    retryPolicy: { maxRetries: 0, initialDelay: 100, maxDelay: 100, backoffMultiplier: 1 },
  });
const channel = () =>
  world.create('notification-channels', { type: 'webhook', config: { url: url(), headers: { Authorization: authorization } } });

/** The id of the delivery of an event that a new route takes to a new destination. */
async function delivered(route: object = {}): Promise<string> {
  const [source, { id: destinationId }] = [await world.create('sources'), await destination()];
  const { id: routeId } = await world.create('routes', { sourceId: source.id, destinationIds: [destinationId], ...route });
  await eventually(async () => expect(await world.registry.getOfAny('route', routeId)).not.toBeNull());
  const { targets, ...event } = newEvent({ org, sourceId: source.id, destinations: [destinationId] });
  await world.acceptor.accept({ ...event, targets: targets.map((target) => ({ ...target, routeId })) });
  return targets[0]?.messageId ?? '';
}

const kinds: [kind: string, request: () => Promise<ShownAttemptDetail | undefined>][] = [
  [
    'a delivery',
    async () => {
      const id = await delivered();
      return await eventually(async () => {
        const [attempt] = (await call('GET', `deliveries/${id}`)).attemptDetails;
        expect(attempt).toBeDefined();
        return attempt.detail;
      });
    },
  ],
  [
    'a test of a destination',
    async () => (await call('POST', `destinations/${(await destination()).id}/test`, { payload: { a: 1 } })).detail,
  ],
  [
    'a test of an endpoint',
    async () => {
      const { data: application } = await call('POST', 'webhook-applications', { name: 'Customer' });
      const headers = [{ name: 'Authorization', value: authorization }];
      const { data: endpoint } = await call('POST', 'webhook-endpoints', { applicationId: application.id, url: url(), headers });
      return (await call('POST', `webhook-endpoints/${endpoint.id}/test`, { payload: { a: 1 } })).data.detail;
    },
  ],
  [
    'a run of a cron job',
    async () => {
      const body = {
        cronExpression: '0 6 * * *',
        url: url(),
        method: 'POST',
        payload: '{"a":1}',
        headers: { Authorization: authorization },
      };
      const { id } = (await world.create('cron', body)).cronJob;
      await call('POST', `cron/${id}/trigger`);
      return (await call('GET', `cron/${id}/executions`)).executions[0].detail;
    },
  ],
  ['a test of a notification channel', async () => (await call('POST', `notification-channels/${(await channel()).id}/test`)).detail],
  [
    'an alert of a notification channel',
    async () => {
      const { id } = await channel();
      await delivered({ notifyOnFailure: true, failureThreshold: 1, notificationChannelIds: [id] });
      const reader = new RedisMessageReader({ redis: world.redis.client, prefix: 'test:' });
      return await eventually(async () => {
        const [alert] = (await reader.deliveries(alertOrganization(org), { destinationId: id }, { limit: 1 })).items;
        const [attempt] = await reader.attempts(alertOrganization(org), alert?.id ?? '');
        expect(attempt).toBeDefined();
        return detailField(attempt?.detail).detail;
      });
    },
  ],
];

test.each(kinds)(
  'the headers of both sides, the peer, the bytes and all phases of %s are kept, without its credential',
  async (_, request) => {
    const detail = await request();
    const [last] = receiver.requests.slice(-1);
    expect(last?.headers.authorization).toBe(authorization);
    expect(detail).toEqual({
      requestHeaders: expect.objectContaining({ host: `receiver.example:${portOf()}`, authorization: '••••' }),
      responseHeaders: expect.objectContaining({ 'x-step': '7', 'x-repeated': expect.not.stringContaining(canary.value) }),
      headersTruncated: false,
      peerAddress: `127.0.0.1:${portOf()}`,
      reusedConnection: expect.any(Boolean),
      requestBytes: last?.body.length,
      responseBytes: 6,
      phases: {
        dnsMs: expect.any(Number),
        connectMs: expect.any(Number),
        tlsMs: expect.any(Number),
        firstByteMs: expect.any(Number),
        totalMs: expect.any(Number),
      },
    });
    expect((await canariesInRedis(world.redis.client, [canary])).found).toEqual([]);
    expect(world.logLines.join('')).not.toContain(canary.value);
  },
);
