import { createServer } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type CertificateAuthority, createCertificateAuthority } from '../../../test/support/certificate-authority.ts';
import { testKeyring } from '../../../test/support/controllers.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { MemoryDirectory, webhookApplication, webhookEndpoint } from '../../../test/support/memory-directory.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { freePort } from '../../../test/support/ports.ts';
import { startReceiver } from '../../../test/support/receiver.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../../test/support/records.ts';
import { newTimedId } from '../../core/ids.ts';
import type { HttpAuthRecord, HttpDestinationRecord } from '../../core/records.ts';
import {
  recordSealingContext,
  type SealedRecordField,
  webhookHeaderSealingContext,
  webhookSecretSealingContext,
} from '../../core/sealing-contexts.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { shardKeys } from '../../data/shard/shard-keys.ts';
import type { NameLookup } from '../targets/http/name-lookups.ts';

const suite = deliverySuite();
const { ends, prefix, receiver, worker } = suite;
let authority: CertificateAuthority;
beforeAll(() => {
  authority = createCertificateAuthority();
});
afterAll(() => authority.remove());
beforeEach(() => suite.registry.put('route', routeRecord()));

const retries = (maxRetries: number) => ({ retryPolicy: { maxRetries, initialDelayMs: 1, maxDelayMs: 1, backoffMultiplier: 1 } });

function destination(url: string, http: Partial<HttpDestinationRecord['http']> = {}, maxRetries = 0): void {
  suite.registry.put('destination', destinationRecord({ url, ...http }, retries(maxRetries)));
}

/** The attempts of a message, once there are so many. */
async function attemptsOf(id: string, count = 1) {
  await suite.becomes(id, { attempts: count });
  return await suite.reader.attempts('org_a', id);
}
const sealed = (value: string, name: SealedRecordField): string =>
  testKeyring.seal(value, recordSealingContext('org_a', 'destination', 'dst_a', name));

/** A receiver that sends scripted bytes after the first bytes of a connection. */
async function rawReceiver(answer: string | null): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => answer !== null && socket.write(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(async () => void server.close());
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

const whole = expect.any(Number);

describe('a failed attempt says what happened', () => {
  test('a failed attempt has the headers of both sides, the bytes and the phases where the receiver answers 500', async () => {
    const to = await receiver((response) =>
      response.writeHead(500, { 'x-request-id': 'r-17', 'content-type': 'text/plain' }).end('broken'),
    );
    destination(`${to.url}/hook`);
    worker();
    const id = await suite.send();
    const [attempt] = await attemptsOf(id);
    const sent = to.requests[0]?.headers ?? {};
    const detail = attempt?.detail;
    expect(Object.fromEntries(detail?.requestHeaders ?? [])).toEqual(sent);
    expect(detail?.responseHeaders).toEqual(
      expect.arrayContaining([
        ['x-request-id', 'r-17'],
        ['content-type', 'text/plain'],
      ]),
    );
    expect(detail).toMatchObject({
      isTruncated: false,
      peerAddress: new URL(to.url).host,
      reusedConnection: false,
      requestBytes: to.requests[0]?.body.length,
      responseBytes: 6,
      phases: { dnsMs: 0, connectMs: whole, tlsMs: 0, firstByteMs: whole, totalMs: whole },
    });
  });

  test('a failed attempt has the address that refused the connection, and nothing that was sent', async () => {
    const port = await freePort();
    destination(`http://127.0.0.1:${port}/`);
    worker();
    const [attempt] = await attemptsOf(await suite.send());
    expect(attempt).toMatchObject({ errorType: 'network', errorMessage: expect.stringContaining('ECONNREFUSED') });
    expect(attempt?.detail).toMatchObject({
      requestHeaders: null,
      responseHeaders: null,
      peerAddress: `127.0.0.1:${port}`,
      requestBytes: 0,
      responseBytes: 0,
      phases: { dnsMs: 0, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: whole },
    });
  });

  const unknownName: NameLookup = (hostname, _, callback) =>
    setImmediate(callback, Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: 'ENOTFOUND' }), []);
  const loopback: NameLookup = (_, __, callback) => setImmediate(callback, null, [{ address: '127.0.0.1', family: 4 }]);
  const silent: NameLookup = () => undefined;

  test.each<[string, NameLookup, string, number | null]>([
    ['that is unknown', unknownName, 'dns', null],
    ['for which DNS does not answer', silent, 'timeout', null],
  ])('a failed attempt at a name %s has no phase that ended', async (_, lookup, errorType, dnsMs) => {
    destination('http://receiver.test/', { timeoutMs: 3000 });
    worker({ lookup });
    const [attempt] = await attemptsOf(await suite.send());
    expect(attempt?.errorType).toBe(errorType);
    expect(attempt?.detail).toMatchObject({
      requestHeaders: null,
      peerAddress: null,
      phases: { dnsMs, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: whole },
    });
  });

  test('a failed attempt whose TLS handshake fails has the time of the lookup and of the connect, and none of TLS', async () => {
    const to = await startReceiver(undefined, authority.issue(['other.test']));
    ends.push(() => to.close());
    const { port } = new URL(to.url);
    destination(`https://receiver.test:${port}/`);
    worker({ lookup: loopback });
    const [attempt] = await attemptsOf(await suite.send());
    expect(attempt?.errorType).toBe('tls');
    expect(attempt?.detail).toMatchObject({
      requestHeaders: null,
      peerAddress: `127.0.0.1:${port}`,
      phases: { dnsMs: whole, connectMs: whole, tlsMs: null, firstByteMs: null },
    });
  });

  test('a failed attempt at a receiver that does not answer in time has the headers that were sent, and no first byte', async () => {
    const port = await rawReceiver(null);
    destination(`http://127.0.0.1:${port}/`, { timeoutMs: 3000 });
    worker();
    const [attempt] = await attemptsOf(await suite.send());
    expect(attempt?.errorType).toBe('timeout');
    expect(attempt?.detail?.requestHeaders).toEqual(expect.arrayContaining([['host', `127.0.0.1:${port}`]]));
    expect(attempt?.detail).toMatchObject({ responseHeaders: null, phases: { connectMs: whole, firstByteMs: null, totalMs: whole } });
  });

  test('a failed attempt at a receiver that stops within its answer has its headers, the first byte and the bytes that came', async () => {
    const port = await rawReceiver('HTTP/1.1 200 OK\r\nx-step: 1\r\ncontent-length: 100\r\n\r\nbegin');
    destination(`http://127.0.0.1:${port}/`, { timeoutMs: 3000 });
    worker();
    const [attempt] = await attemptsOf(await suite.send());
    expect(attempt?.errorType).toBe('timeout');
    expect(attempt?.detail).toMatchObject({ responseBytes: 5, phases: { firstByteMs: whole } });
    expect(attempt?.detail?.responseHeaders).toEqual(expect.arrayContaining([['x-step', '1']]));
  });

  test.each([5_000, 30_000, 60_000])('a failed attempt keeps less than 4 KiB of response headers of %i bytes', async (bytes) => {
    const to = await receiver((response) => response.writeHead(500, { 'x-first': '1', 'x-large': 'l'.repeat(bytes) }).end());
    destination(to.url);
    worker();
    const id = await suite.send();
    const [attempt] = await attemptsOf(id);
    const [text] = await suite.redis.client.hvals(shardKeys(prefix, 0).attempts(id.slice(6)));
    expect(Buffer.byteLength(text ?? '')).toBeLessThanOrEqual(4096);
    expect(attempt?.detail?.isTruncated).toBe(true);
    expect(attempt?.detail?.responseHeaders).toEqual(expect.arrayContaining([['x-first', '1']]));
  });

  test('a failed attempt at a receiver with more than 64 KiB of headers reports it, without them', async () => {
    const to = await receiver((response) => response.writeHead(500, { 'x-large': 'l'.repeat(70_000) }).end());
    destination(to.url);
    worker();
    const [attempt] = await attemptsOf(await suite.send());
    expect(attempt?.errorMessage).toContain('64 KiB');
    expect(attempt?.detail?.responseHeaders).toBeNull();
    expect(attempt?.detail?.requestHeaders).not.toBeNull();
  });

  test('a success after a failure, over the connection of the failure, says that it was reused', async () => {
    const to = await startReceiver(
      (response, number) => response.writeHead(number === 1 ? 503 : 200).end('x'),
      authority.issue(['receiver.test']),
    );
    ends.push(() => to.close());
    const { port } = new URL(to.url);
    destination(`https://receiver.test:${port}/`, {}, 1);
    worker({ lookup: loopback, extraCa: authority.text });
    const [first, second] = await attemptsOf(await suite.send(), 2);
    expect(first?.detail).toMatchObject({ reusedConnection: false, phases: { dnsMs: whole, connectMs: whole, tlsMs: whole } });
    expect(second?.detail).toMatchObject({
      reusedConnection: true,
      peerAddress: `127.0.0.1:${port}`,
      phases: { dnsMs: 0, connectMs: 0, tlsMs: 0, firstByteMs: whole },
    });
  });
});

describe('POSTHORN_ATTEMPT_DETAIL', () => {
  test.each([
    ['failures', [false], [true, true]],
    ['all', [true], [true, true]],
    ['none', [false], [false, false]],
  ] as const)(
    '%s: the detail of a success, and of a failure with the success after it, is kept as %j and %j',
    async (mode, ofSuccess, ofFailure) => {
      const to = await receiver((response, number) =>
        response.writeHead(number === 2 ? 500 : 200).end('a body that is too long for the short form of an attempt'),
      );
      destination(to.url, {}, 1);
      worker({ attemptDetail: mode });
      const one = await attemptsOf(await suite.send());
      const two = await attemptsOf(await suite.send(), 2);
      expect(one.map(({ detail }) => detail !== undefined)).toEqual(ofSuccess);
      expect(two.map(({ detail }) => detail !== undefined)).toEqual(ofFailure);
    },
  );
});

describe('a secret is in no byte that is stored of an attempt', () => {
  const token = 'CANARY-token-of-the-shop';
  const short = 'CN7Q';
  const auths: [string, HttpAuthRecord][] = [
    ['a bearer token', { type: 'bearer', token: sealed(token, 'token') }],
    ['a password', { type: 'basic', username: 'shop', password: sealed(token, 'password') }],
    ['an API key in a header with any name', { type: 'api_key', headerName: 'X-Shop', key: sealed(token, 'key') }],
    ['a short value of a custom header', { type: 'custom_header', headerName: 'X-Shop', headerValue: sealed(short, 'headerValue') }],
  ];

  test.each(auths)('%s, which the receiver repeats in its headers', async (_, auth) => {
    const to = await receiver((response, __, { headers }) => {
      for (const [name, value] of Object.entries(headers))
        response.setHeader(name === 'x-shop' ? name : `x-repeated-${name}`, String(value));
      response.writeHead(500).end();
    });
    destination(to.url, { auth });
    worker();
    const id = await suite.send();
    const [attempt] = await attemptsOf(id);
    expect(JSON.stringify(to.requests[0]?.headers)).toMatch(/CANARY|CN7Q|Basic/);
    await expectAbsent(id, [token, short, Buffer.from(`shop:${token}`).toString('base64')]);
    expect(JSON.stringify(attempt?.detail?.requestHeaders)).toContain('••••');
    expect(attempt?.detail?.responseHeaders?.length).toBeGreaterThan(5);
  });

  test('values of headers that come from a Secret, of any length, and of the sender what is a credential by its name', async () => {
    const to = await receiver((response) => response.writeHead(500).end());
    const headers = [
      { name: 'X-Tenant', sealed: sealed(short, 'headerValue') },
      { name: 'X-Plain', value: 'seen' },
    ];
    destination(to.url, { headers });
    worker();
    const id = await suite.send();
    const [attempt] = await attemptsOf(id);
    expect(to.requests[0]?.headers['x-tenant']).toBe(short);
    await expectAbsent(id, [short]);
    expect(attempt?.detail?.requestHeaders).toEqual(
      expect.arrayContaining([
        ['x-tenant', '••••'],
        ['x-plain', 'seen'],
      ]),
    );
  });

  test('cookies and credentials of the receiver, and those in the URLs to which it redirects', async () => {
    const secrets = ['CANARY-session', 'CANARY-key', 'CANARY-in-query', 'CANARY-in-url', 'CANARY-user', 'CANARY-fragment'];
    const to = await receiver((response) =>
      response
        .writeHead(302, {
          'set-cookie': [`session=${secrets[0]}; Path=/`, 'lang=en'],
          'x-api-key': secrets[1],
          location: `https://${secrets[4]}:${secrets[3]}@receiver.test/?page=2&access_token=${secrets[2]}#id_token=${secrets[5]}&state=1`,
        })
        .end(),
    );
    destination(to.url);
    worker();
    const id = await suite.send();
    const [attempt] = await attemptsOf(id);
    await expectAbsent(id, secrets);
    expect(attempt?.detail?.responseHeaders).toEqual(
      expect.arrayContaining([
        ['set-cookie', '••••'],
        ['location', 'https://••••@receiver.test/?page=2&access_token=••••#id_token=••••&state=1'],
      ]),
    );
  });

  async function expectAbsent(id: string, secrets: readonly string[]): Promise<void> {
    const keys = shardKeys(prefix, 0);
    const stored = await suite.redis.client.hgetall(keys.attempts(id.slice(6)));
    expect(Object.keys(stored)).toEqual(['1']);
    const text = JSON.stringify([stored, await suite.redis.client.hgetall(keys.message(id.slice(6)))]);
    for (const secret of secrets) expect(text).not.toContain(secret);
  }
});

test('an attempt at a webhook endpoint has the same detail, without its signing secret and the credentials among its headers', async () => {
  const to = await receiver((response, _, { headers }) => response.writeHead(500, { 'x-repeated': String(headers['x-tenant']) }).end());
  const directory = new MemoryDirectory();
  directory.putApplication(webhookApplication());
  const signing = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const secret = {
    sealed: testKeyring.seal(signing, webhookSecretSealingContext('org_a', 'ep_a')),
    prefix: 'whsec_',
    version: 1,
    previous: [],
  };
  const headers = [{ name: 'X-Tenant', sealed: testKeyring.seal('CANARY-tenant', webhookHeaderSealingContext('org_a', 'ep_a')) }];
  directory.putEndpoint(webhookEndpoint({ url: to.url, secret, headers }));
  worker({ webhooks: { ...directory.sources(), retries: { delaysMs: [] } } });
  const messageId = newTimedId('msg_', 0, Date.now());
  const target = {
    messageId,
    routeId: 'app_a',
    destinationId: 'ep_a',
    shard: 0,
    maxAttempts: 1,
    subscription: { id: 'sub_a', transformId: null },
  };
  const webhook = { labels: {}, metadata: {}, idempotencyKey: null, applicationId: null, endpointIds: [] };
  const org = webhookOrganization('org_a');
  await suite.acceptor.accept({ ...newEvent(), org, sourceId: 'etp_a', sourceSlug: 'order.paid', webhook, targets: [target] });
  await eventually(async () => expect(await suite.reader.delivery(org, messageId)).toMatchObject({ attempts: 1 }));
  const [attempt] = await suite.reader.attempts(org, messageId);
  expect(to.requests[0]?.headers['x-tenant']).toBe('CANARY-tenant');
  expect(Object.fromEntries(attempt?.detail?.requestHeaders ?? [])).toMatchObject({
    'webhook-id': messageId,
    'webhook-signature': expect.stringMatching(/^v1,/),
    'x-tenant': '••••',
  });
  expect(attempt?.detail).toMatchObject({ peerAddress: new URL(to.url).host, phases: { firstByteMs: whole } });
  expect(Object.fromEntries(attempt?.detail?.responseHeaders ?? [])).toMatchObject({ 'x-repeated': '••••' });
  const stored = JSON.stringify(await suite.redis.client.hgetall(shardKeys(prefix, 0).attempts(messageId.slice(6))));
  for (const text of ['CANARY-tenant', signing, signing.slice(6)]) expect(stored).not.toContain(text);
});

test('twelve failed attempts of a delivery leave the details of three, and the outcome of all', async () => {
  const to = await receiver((response, number) => response.writeHead(500, { 'x-number': `${number}` }).end(`answer ${number}`));
  suite.registry.put('route', routeRecord({ circuit: { failureThreshold: 100, cooldownSeconds: 300, probeSuccessThreshold: 2 } }));
  suite.registry.put('organization', organizationRecord());
  destination(to.url, {}, 11);
  worker();
  const event = newEvent();
  await suite.acceptor.accept(event);
  const id = event.targets[0]?.messageId ?? '';
  const attempts = await attemptsOf(id, 12);
  await eventually(() => expect(to.requests.length).toBe(12));
  expect(attempts.map(({ responseBody }) => responseBody)).toEqual(Array.from({ length: 12 }, (_, i) => `answer ${i + 1}`));
  expect(attempts.filter(({ detail }) => detail !== undefined).map(({ attemptNumber }) => attemptNumber)).toEqual([1, 11, 12]);
});
