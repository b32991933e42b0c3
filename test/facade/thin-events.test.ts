import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { recordSealingContext, webhookSecretSealingContext } from '../../src/core/sealing-contexts.ts';
import { webhookOrganization } from '../../src/core/webhook.ts';
import { RedisMessageReplayer } from '../../src/data/history/message-replayer.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import type { NewEvent } from '../../src/data/shard/messages.ts';
import type { WebhookEndpoint } from '../../src/data/webhooks/webhooks.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { testKeyring } from '../support/controllers.ts';
import { startDeliveryProgram } from '../support/delivery-program.ts';
import { deliverySuite } from '../support/delivery-suite.ts';
import { eventually } from '../support/eventually.ts';
import { largePayload, mebibyte } from '../support/large-payloads.ts';
import { MemoryDirectory, webhookApplication, webhookEndpoint } from '../support/memory-directory.ts';
import { newEvent } from '../support/new-event.ts';
import { fetchLink, linkIn, type PayloadLinkServer, startPayloadLinks } from '../support/payload-links.ts';
import type { ReceivedRequest } from '../support/receiver.ts';
import { destinationRecord, organizationRecord, routeRecord, transformRecord } from '../support/records.ts';
import { newWebhookEvent } from '../support/webhook-messages.ts';
import { verifies } from '../support/webhook-verification.ts';

const shards = 2;
const suite = deliverySuite({ shards });
const { prefix, ends, receiver } = suite;
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const transform = transformRecord('{"b": 2}');
let links: PayloadLinkServer;

beforeEach(async () => {
  links = await serve();
  suite.registry.put('route', routeRecord());
});

async function serve(own: Partial<Parameters<typeof startPayloadLinks>[0]> = {}): Promise<PayloadLinkServer> {
  const server = await startPayloadLinks({ redis: suite.redis.client, prefix, shards, registry: suite.registry, ...own });
  ends.push(() => server.close());
  return server;
}
const worker = (own: Parameters<typeof suite.worker>[0] = {}) => suite.worker({ publicUrl: links.url, ...own });
type Http = Parameters<typeof destinationRecord>[0];
const thin = (url: string, http: Partial<Http> = {}, changes: Parameters<typeof destinationRecord>[1] = {}) =>
  suite.registry.put('destination', destinationRecord({ url, payloadForm: 'thin', ...http }, changes));
async function send(changes: Parameters<typeof newEvent>[0] = {}): Promise<NewEvent & { messageId: string }> {
  const event = newEvent(changes);
  await suite.acceptor.accept(event);
  return { ...event, messageId: event.targets[0]?.messageId ?? '' };
}
const first = ([request]: readonly ReceivedRequest[]): ReceivedRequest => {
  if (request === undefined) throw new Error('nothing arrived');
  return request;
};
const tokenOf = (url: string): string => new URL(url).searchParams.get('token') ?? '';

describe('a destination of the form thin', () => {
  test('a destination of the form thin gets a signed JSON object with id, type, timestamp and link; the link has the payload that the form full sends', async () => {
    const [to, full] = [await receiver(), await receiver()];
    const signingSecrets = [testKeyring.seal(secret, recordSealingContext('org_a', 'destination', 'dst_a', 'signingSecrets'))];
    thin(to.url, { signingSecrets });
    suite.registry.put('destination', destinationRecord({ url: full.url }, { id: 'dst_b', slug: 'b' }));
    suite.registry.put('route', routeRecord({ destinations: ['dst_a', 'dst_b'].map((id) => ({ id, shard: 0 })) }));
    worker();
    const payload = gzipSync('<order total="12.5"/>');
    const headers: [string, string][] = [
      ['content-type', 'text/xml; charset=utf-8'],
      ['content-encoding', 'gzip'],
      ['x-shop-topic', 'order'],
    ];
    const event = await send({ payload, headers, contentType: 'text/xml; charset=utf-8', destinations: ['dst_a', 'dst_b'] });
    const request = first(await to.arrived(1));
    const whole = first(await full.arrived(1));
    expect(JSON.parse(request.body.toString())).toEqual({
      id: event.id,
      type: null,
      timestamp: new Date(event.receivedAtMs).toISOString(),
      url: expect.stringContaining(`${links.url}/api/payload?token=`),
    });
    expect(request.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(request.body.length),
      'webhook-id': event.messageId,
      'x-posthorn-event-id': event.id,
      'x-shop-topic': 'order',
    });
    expect(request.headers).not.toHaveProperty('content-encoding');
    expect(verifies(request, secret)).toBe(true);
    const fetched = await fetchLink(linkIn(request));
    expect([fetched.status, fetched.body.equals(whole.body), fetched.body.equals(payload)]).toEqual([200, true, true]);
    for (const name of ['content-type', 'content-encoding', 'content-length']) expect(fetched.headers[name]).toBe(whole.headers[name]);
    expect(fetched.headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-disposition': `attachment; filename="${event.messageId}"`,
      'content-security-policy': expect.stringMatching(/default-src 'none'.*; sandbox$/),
    });
    expect(await links.metrics.metrics()).toContain('posthorn_api_request_duration_seconds_count{operation="fetchPayload",status="200"} 1');
  });

  test('the content type that the destination sets is that of the payload, not of the object with the link', async () => {
    const to = await receiver();
    thin(to.url, { headers: [{ name: 'Content-Type', value: 'application/cloudevents+json' }] });
    worker();
    await send();
    const request = first(await to.arrived(1));
    expect(request.headers['content-type']).toBe('application/json');
    expect((await fetchLink(linkIn(request))).headers['content-type']).toBe('application/cloudevents+json');
  });

  test('what the destination says of the coding of its payloads is said behind the link, not of the object', async () => {
    const to = await receiver();
    const headers = ['Content-Encoding', 'Digest', 'X-A'].map((name) => ({ name, value: 'gzip' }));
    const headerTemplates = [{ name: 'Content-Language', template: 'en' }];
    thin(to.url, { headers, headerTemplates });
    worker();
    await send();
    const request = first(await to.arrived(1));
    expect(request.headers).toMatchObject({ 'content-type': 'application/json', 'x-a': 'gzip' });
    for (const name of ['content-encoding', 'digest', 'content-language']) expect(request.headers).not.toHaveProperty(name);
    expect((await fetchLink(linkIn(request))).headers['content-encoding']).toBe('gzip');
  });

  test('header templates read the payload behind the link, and make no content type', async () => {
    const to = await receiver();
    const headerTemplates = [
      { name: 'X-A', template: 'a {{ payload.a }}' },
      { name: 'Content-Type', template: '{{ headers.content-type }}; v=1' },
    ];
    thin(to.url, { headerTemplates });
    worker();
    await send();
    expect(first(await to.arrived(1)).headers).toMatchObject({ 'x-a': 'a 1', 'content-type': 'application/json' });
  });

  test('a retry and a replay have links of their own to the same payload', async () => {
    const to = await receiver((response, number) => response.writeHead(number === 1 ? 500 : 200).end());
    thin(to.url);
    worker();
    const { messageId } = await send();
    await suite.becomes(messageId, { status: 'delivered', attempts: 2, lastSentAs: { isThin: true, scheme: null } });
    const replayer = new RedisMessageReplayer({ redis: suite.redis.client, prefix, clock: systemClock, shards: () => shards });
    const replayed = await replayer.replay('org_a', messageId);
    const requests = await to.arrived(3);
    expect(requests.map(({ headers }) => headers['webhook-id'])).toEqual([messageId, messageId, replayed]);
    expect(new Set(requests.map(linkIn)).size).toBe(3);
    for (const request of requests) expect((await fetchLink(linkIn(request))).body.toString()).toBe('{"a":1}');
  });

  test('the link has the output of the transform, also after the message has failed over to another shard; the form is that of each destination', async () => {
    const [from, to, spare] = [await receiver((response) => response.writeHead(500).end()), await receiver(), await receiver()];
    thin(from.url);
    thin(to.url, {}, { id: 'dst_b', slug: 'b', shard: 1 });
    const failover = { destinations: [{ id: 'dst_b', shard: 1 }], afterAttempts: 1 };
    suite.registry.put('route', routeRecord({ failover, transformId: 'trf_a' }));
    suite.registry.put('transform', transform);
    worker();
    const { messageId } = await send();
    const urls = [first(await from.arrived(1)), first(await to.arrived(1))].map(linkIn);
    await suite.becomes(messageId, { status: 'delivered', destinationId: 'dst_b' });
    for (const url of urls) {
      const { headers, body } = await fetchLink(url);
      expect([body.toString(), headers['content-type']]).toEqual(['{"b":2}', 'application/json']);
    }
    suite.registry.put('destination', destinationRecord({ url: spare.url }, { id: 'dst_b', slug: 'b', shard: 1, generation: 2 }));
    await send();
    expect(first(await spare.arrived(1)).body.toString()).toBe('{"b":2}');
  });

  test('a payload in chunks is sent as a link, from the home of the message and from another shard', async () => {
    const [from, to] = [await receiver((response) => response.writeHead(500).end()), await receiver()];
    thin(from.url);
    thin(to.url, {}, { id: 'dst_b', slug: 'b', shard: 1 });
    suite.registry.put('route', routeRecord({ failover: { destinations: [{ id: 'dst_b', shard: 1 }], afterAttempts: 1 } }));
    worker();
    const payload = largePayload(3 * mebibyte + 17);
    const { messageId } = await send({ payload, contentType: 'application/octet-stream', headers: [] });
    const early = linkIn(first(await from.arrived(1)));
    const request = first(await to.arrived(1));
    expect(request.body.length).toBeLessThan(2000);
    await suite.becomes(messageId, { status: 'delivered' });
    for (const url of [early, linkIn(request)]) {
      const fetched = await fetchLink(url);
      expect([fetched.status, fetched.headers['content-length']]).toEqual([200, String(payload.length)]);
      expect(fetched.body.equals(payload)).toBe(true);
    }
  });

  test('the recorded answer of a receiver does not repeat the link', async () => {
    const to = await receiver((response, _, request) => response.writeHead(500).end(`I have ${request.body.toString()}`));
    thin(to.url);
    worker();
    const { messageId } = await send();
    const token = tokenOf(linkIn(first(await to.arrived(1))));
    await eventually(async () => {
      const attempts = JSON.stringify(await suite.reader.attempts('org_a', messageId));
      expect(attempts).toContain('I have');
      expect(attempts).not.toContain(token.slice(20, 60));
    });
  });

  test('a worker without a public address sends nothing: each attempt fails and says why', async () => {
    const to = await receiver();
    thin(to.url, {}, { retryPolicy: { maxRetries: 0, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 } });
    suite.worker();
    const { messageId } = await send();
    await suite.becomes(messageId, {
      status: 'dlq',
      lastErrorType: 'blocked',
      lastErrorMessage: expect.stringContaining('POSTHORN_PUBLIC_URL'),
    });
    expect(to.requests).toEqual([]);
  });

  test('a worker that takes over from one that was killed in an attempt sends a link that works, as the first one does', async () => {
    const to = await receiver((response, number) => {
      if (number > 1) response.end();
    });
    const publisher = new RedisRegistryPublisher(suite.redis.client, prefix);
    const epoch = await publisher.mintEpoch();
    await publisher.publish(epoch, 'organization', organizationRecord({ egress: { allowedCidrs: ['127.0.0.0/8'], allowedHosts: [] } }));
    await publisher.publish(epoch, 'route', routeRecord());
    await publisher.publish(epoch, 'destination', destinationRecord({ url: to.url, payloadForm: 'thin' }));
    await publisher.markComplete();
    const start = async () => {
      const environment = { POSTHORN_REDIS_KEY_PREFIX: prefix, POSTHORN_SHARDS: String(shards), POSTHORN_PUBLIC_URL: `${links.url}/` };
      const program = await startDeliveryProgram(suite.redis.url, environment);
      ends.push(() => program.stop());
      return program;
    };
    const killed = await start();
    const { messageId } = await send();
    await to.arrived(1);
    killed.signal('SIGKILL');
    await killed.ended;
    await start();
    const requests = await to.arrived(2);
    for (const request of requests) {
      expect([request.headers['webhook-id'], linkIn(request).startsWith(`${links.url}/api/payload?`)]).toEqual([messageId, true]);
      expect((await fetchLink(linkIn(request))).body.toString()).toBe('{"a":1}');
    }
  }, 120_000);
});

describe('a webhook endpoint of the form thin', () => {
  const org = webhookOrganization('org_a');
  const sealed = testKeyring.seal(secret, webhookSecretSealingContext('org_a', 'ep_a'));
  let directory: MemoryDirectory;

  beforeEach(() => {
    directory = new MemoryDirectory();
    directory.putApplication(webhookApplication());
  });
  function endpoint(url: string, changes: Partial<WebhookEndpoint> = {}): WebhookEndpoint {
    const made = webhookEndpoint({
      url,
      secret: { prefix: 'whsec_BwcH', version: 1, previous: [], sealed },
      payloadForm: 'thin',
      ...changes,
    });
    directory.putEndpoint(made);
    return made;
  }
  const start = (own = {}) => worker({ webhooks: { ...directory.sources(), retries: { delaysMs: [50] } }, ...own });

  test('a webhook endpoint of the form thin gets a signed object with the type of the event; the link has the payload', async () => {
    const to = await receiver();
    const made = endpoint(to.url);
    start();
    const event = newWebhookEvent('org_a', [made], { payload: Buffer.from('{"total": 12.50}') });
    await suite.acceptor.accept(event);
    const request = first(await to.arrived(1));
    expect(JSON.parse(request.body.toString())).toMatchObject({ id: event.id, type: 'order.paid', url: expect.any(String) });
    expect(request.headers).toMatchObject({ 'content-type': 'application/json', 'content-length': String(request.body.length) });
    expect(verifies(request, secret)).toBe(true);
    const { status, headers, body } = await fetchLink(linkIn(request));
    expect([status, body.toString(), headers['content-type']]).toEqual([200, '{"total": 12.50}', 'application/json']);
  });

  test('the link has the output of the transform of the subscription', async () => {
    const to = await receiver();
    const made = endpoint(to.url);
    suite.registry.put('transform', transform);
    start();
    const event = newWebhookEvent('org_a', [made]);
    const targets = event.targets.map((target) => ({ ...target, subscription: { id: 'sub_a', transformId: 'trf_a' } }));
    await suite.acceptor.accept({ ...event, targets });
    const { body } = await fetchLink(linkIn(first(await to.arrived(1))));
    expect(body.toString()).toBe('{"b":2}');
  });

  test('a worker without a public address sends nothing', async () => {
    const to = await receiver();
    const made = endpoint(to.url);
    start({ publicUrl: undefined });
    const event = newWebhookEvent('org_a', [made]);
    await suite.acceptor.accept(event);
    const id = event.targets[0]?.messageId ?? '';
    await eventually(async () => expect(await suite.reader.delivery(org, id)).toMatchObject({ lastErrorType: 'blocked' }));
    expect(to.requests).toEqual([]);
  });
});
