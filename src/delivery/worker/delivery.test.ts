import { createServer } from 'node:net';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { createCertificateAuthority } from '../../../test/support/certificate-authority.ts';
import { testKeyring } from '../../../test/support/controllers.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lenientClock } from '../../../test/support/lenient-clock.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { freePort } from '../../../test/support/ports.ts';
import { RecordRegistry } from '../../../test/support/record-registry.ts';
import { destinationRecord, organizationRecord, routeRecord } from '../../../test/support/records.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { startTestDelivery } from '../../../test/support/test-delivery.ts';
import { startTlsReceiver } from '../../../test/support/tls-receiver.ts';
import type { HttpAuthRecord, HttpDestinationRecord } from '../../core/records.ts';
import { recordSealingContext, type SealedRecordField } from '../../core/sealing-contexts.ts';
import { RedisMessageAcceptor } from '../../data/queue/message-acceptor.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const suite = deliverySuite();
const { ends, prefix, receiver, worker } = suite;

beforeEach(() => suite.registry.put('route', routeRecord()));

function destination(url: string, changes: Partial<HttpDestinationRecord> = {}, http: Partial<HttpDestinationRecord['http']> = {}): void {
  suite.registry.put('destination', destinationRecord({ url, ...http }, changes));
}
async function send(changes: Parameters<typeof newEvent>[0] = {}) {
  const event = newEvent(changes);
  await suite.acceptor.accept(event);
  return event.targets[0]?.messageId ?? '';
}
async function delivery(id: string) {
  const found = await suite.reader.delivery('org_a', id);
  if (found === null) throw new Error(`there is no delivery ${id}`);
  return found;
}
async function ended(id: string, expected: object): Promise<void> {
  await eventually(async () => expect(await delivery(id)).toMatchObject(expected));
}

describe('a delivery', () => {
  test('a delivery carries the exact bytes, the forwarded headers, and a signature that an independent verifier takes', async () => {
    const to = await receiver();
    const sealed = testKeyring.seal(secret, recordSealingContext('org_a', 'destination', 'dst_a', 'signingSecrets'));
    destination(`${to.url}/hook`, {}, { signingSecrets: [sealed], headers: [{ name: 'X-Team', value: 'shop' }] });
    worker();
    const payload = Buffer.from('{ "spaces":  "kept", "ü": 1 }');
    const headers: [string, string][] = [
      ['content-type', 'application/json'],
      ['x-github-event', 'push'],
      ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
    ];
    const id = await send({ payload, headers });
    const [request] = await to.arrived(1);
    expect(request?.body.equals(payload)).toBe(true);
    expect(request?.headers).toMatchObject({
      'webhook-id': id,
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-team': 'shop',
      traceparent: headers[2]?.[1],
      'user-agent': 'Posthorn/0.0.0-test',
      'x-posthorn-attempt': '1',
    });
    expect(() => new Webhook(secret).verify(payload.toString(), request?.headers as Record<string, string>)).not.toThrow();
    await ended(id, { status: 'delivered', attempts: 1, lastResponseStatus: 200 });
  });

  test.each(['x-gitlab-token', 'x-api-key', 'x-forwarded-user', 'impersonate-user'])(
    'the header %s, with which an older event is stored, is not sent on',
    async (name) => {
      const to = await receiver();
      destination(to.url);
      worker();
      await send({
        headers: [
          ['x-gitlab-event', 'Push Hook'],
          [name, 'the secret'],
        ],
      });
      const [request] = await to.arrived(1);
      expect(request?.headers['x-gitlab-event']).toBe('Push Hook');
      expect(request?.headers).not.toHaveProperty(name);
    },
  );

  const sealed = (field: SealedRecordField, plain: string): string =>
    testKeyring.seal(plain, recordSealingContext('org_a', 'destination', 'dst_a', field));
  test.each<{ auth: HttpAuthRecord; expected: Record<string, string> }>([
    {
      auth: { type: 'basic', username: 'shop', password: sealed('password', 'pä:ss') },
      expected: { authorization: `Basic ${Buffer.from('shop:pä:ss').toString('base64')}`, 'x-key': 'of the headers' },
    },
    { auth: { type: 'bearer', token: sealed('token', 'a.b') }, expected: { authorization: 'Bearer a.b', 'x-key': 'of the headers' } },
    {
      auth: { type: 'api_key', headerName: 'X-Key', key: sealed('key', 'k1') },
      expected: { authorization: 'of the headers', 'x-key': 'k1' },
    },
    {
      auth: { type: 'custom_header', headerName: 'X-Key', headerValue: sealed('headerValue', 'v 1') },
      expected: { authorization: 'of the headers', 'x-key': 'v 1' },
    },
  ])(
    'a delivery with the credential of $auth.type, not a header of its name, and the user agent of the destination',
    async ({ auth, expected }) => {
      const to = await receiver();
      const headers = ['Authorization', 'X-Key'].map((name) => ({ name, value: 'of the headers' }));
      destination(to.url, {}, { auth, headers: [...headers, { name: 'User-Agent', value: 'Shop/1' }] });
      worker();
      const id = await send();
      const [request] = await to.arrived(1);
      expect(request?.headers).toMatchObject({ ...expected, 'user-agent': 'Shop/1' });
      await ended(id, { status: 'delivered' });
    },
  );

  test('a delivery that fails twice arrives at the third attempt under the same webhook-id', async () => {
    const to = await receiver((response, number) => response.writeHead(number < 3 ? 500 : 200).end());
    destination(to.url);
    worker();
    const id = await send();
    const requests = await to.arrived(3);
    expect(requests.map(({ headers }) => headers['webhook-id'])).toEqual([id, id, id]);
    expect(requests.map(({ headers }) => headers['x-posthorn-attempt'])).toEqual(['1', '2', '3']);
    await ended(id, { status: 'delivered', attempts: 3 });
    expect((await suite.reader.attempts('org_a', id)).map(({ responseStatus }) => responseStatus)).toEqual([500, 500, 200]);
  });

  test('a delivery that always fails is a dead letter after its retries', async () => {
    const to = await receiver((response) => response.writeHead(503).end('no'));
    destination(to.url, { retryPolicy: { maxRetries: 1, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 } });
    worker();
    await ended(await send(), { status: 'dlq', deadLetterReason: 'max_retries_exceeded', attempts: 2, lastErrorType: 'http_error' });
  });

  test('a delivery whose payload is gone is a dead letter that reports it', async () => {
    const to = await receiver();
    destination(to.url);
    const event = newEvent();
    await suite.acceptor.accept(event);
    const [key] = await suite.redis.client.keys(`${prefix}{s0}:e:*`);
    expect(await suite.redis.client.del(key ?? '')).toBe(1);
    worker();
    await ended(event.targets[0]?.messageId ?? '', { status: 'dlq', deadLetterReason: 'payload_not_found', attempts: 0 });
  });

  test('a delivery waits as long as Retry-After requires', async () => {
    const to = await receiver((response, number) => response.writeHead(number === 1 ? 429 : 200, { 'retry-after': '1' }).end());
    destination(to.url);
    worker();
    await send();
    const [first, second] = await to.arrived(2);
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test('a delivery does not follow a redirect', async () => {
    const elsewhere = await receiver();
    const to = await receiver((response) => response.writeHead(302, { location: elsewhere.url }).end());
    destination(to.url, { retryPolicy: { maxRetries: 0, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 } });
    worker();
    await ended(await send(), { status: 'dlq', lastResponseStatus: 302 });
    expect(elsewhere.requests).toEqual([]);
  });

  test('a delivery succeeds only with the response that the route expects', async () => {
    const to = await receiver((response, number) => response.writeHead(200).end(number === 1 ? 'queued' : 'all done'));
    suite.registry.put('route', routeRecord({ expectedResponse: { statusCodes: [200], bodyContains: 'done' } }));
    destination(to.url);
    worker();
    await ended(await send(), { status: 'delivered', attempts: 2 });
  });
});

describe('what goes wrong is named', () => {
  const once = { retryPolicy: { maxRetries: 0, initialDelayMs: 100, maxDelayMs: 100, backoffMultiplier: 1 } };

  test('a receiver that drips is cut by the deadline', async () => {
    const to = await receiver((response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write('.'), 50);
      response.on('close', () => clearInterval(drip));
    });
    destination(to.url, once, { timeoutMs: 500 });
    worker();
    const id = await send();
    await ended(id, { completedAtMs: expect.any(Number) });
    expect(await suite.reader.attempts('org_a', id)).toMatchObject([{ errorType: 'timeout' }]);
  });

  test('a receiver that never answers is a timeout', async () => {
    const to = await receiver(() => {});
    destination(to.url, once, { timeoutMs: 300 });
    worker();
    await ended(await send(), { status: 'dlq', lastErrorType: 'timeout' });
  });

  test('a refused connection is network', async () => {
    destination(`http://127.0.0.1:${await freePort()}`, once);
    worker();
    await ended(await send(), { status: 'dlq', lastErrorType: 'network' });
  });

  test('a name that does not resolve is dns', async () => {
    destination('http://nothing.invalid/hook', once);
    worker();
    await ended(await send(), { status: 'dlq', lastErrorType: 'dns' });
  });

  test('a server that speaks no TLS is tls or network', async () => {
    const server = createServer((socket) => socket.end('hello\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ends.push(async () => server.close());
    const address = server.address();
    destination(`https://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`, once);
    worker();
    await ended(await send(), { status: 'dlq', lastErrorType: expect.stringMatching(/^(tls|network)$/) });
  });

  test.each([
    'http://127.0.0.1:{port}',
    'http://localhost:{port}',
    'http://127.1:{port}',
    'http://2130706433:{port}',
    'http://0x7f000001:{port}',
    'http://[::1]:{port}',
    'http://[::ffff:127.0.0.1]:{port}',
    'http://0.0.0.0:{port}',
    'http://169.254.169.254/latest/meta-data',
    'http://10.0.0.1/',
    'http://192.168.1.1/',
    'http://172.16.0.1/',
    'http://100.64.0.1/',
    'http://[fe80::1]/',
    'http://[fc00::1]/',
    'http://[64:ff9b::7f00:1]/',
  ])('%s is blocked where the organization allows no private networks', async (url) => {
    const to = await receiver();
    suite.registry.put('organization', organizationRecord({ egress: { allowedCidrs: [], allowedHosts: [] } }));
    destination(url.replace('{port}', new URL(to.url).port), once);
    worker();
    await ended(await send(), { status: 'dlq', lastErrorType: 'blocked' });
    expect(to.requests).toEqual([]);
  });

  test('a huge body is read in part only, and the status decides', async () => {
    const to = await receiver((response) => {
      response.writeHead(200);
      const block = Buffer.alloc(65_536, 'x');
      const pump = (): void => {
        while (!response.destroyed && response.write(block));
        response.once('drain', pump);
      };
      pump();
    });
    destination(to.url, once);
    worker();
    const id = await send();
    await ended(id, { status: 'delivered' });
    expect((await suite.reader.attempts('org_a', id))[0]?.responseBody?.length).toBeLessThanOrEqual(10_240);
  });

  test('a receiver with a private authority gets the certificate that it requests', async () => {
    const authority = createCertificateAuthority();
    ends.push(async () => authority.remove());
    const server = { ...authority.issue(['127.0.0.1']), ca: authority.text, requestCert: true };
    const to = await startTlsReceiver({ tls: server, address: '127.0.0.1' });
    ends.push(() => to.stop());
    const own = authority.issue(['127.0.0.1']);
    const seal = (text: string, field: 'clientCertificate' | 'clientKey') =>
      testKeyring.seal(text, recordSealingContext('org_a', 'destination', 'dst_a', field));
    const clientCertificate = seal(own.cert.toString(), 'clientCertificate');
    const tls = { ca: authority.text, clientCertificate, clientKey: seal(own.key.toString(), 'clientKey') };
    destination(to.url(), {}, { tls });
    worker();
    await ended(await send(), { status: 'delivered' });
  });

  test('a signing secret that does not open ends as secret_decryption_failed', async () => {
    const doesNotOpen = { lastErrorType: 'secret_decryption_failed', lastErrorMessage: expect.stringContaining('does not open') };
    const to = await receiver();
    const foreign = testKeyring.seal(secret, recordSealingContext('org_b', 'destination', 'dst_a', 'signingSecrets'));
    destination(to.url, {}, { signingSecrets: [foreign] });
    worker();
    await ended(await send(), { status: 'dlq', deadLetterReason: 'secret_decryption_failed', ...doesNotOpen });
    expect(to.requests).toEqual([]);
  });
});

describe('configuration', () => {
  test('a disabled destination keeps its messages, and gets them when it is enabled', async () => {
    const to = await receiver();
    destination(to.url, { enabled: false });
    worker();
    const id = await send();
    await eventually(async () => expect(await suite.redis.client.scard(`${prefix}{s0}:paused`)).toBe(1));
    expect(to.requests).toEqual([]);
    destination(to.url, { enabled: true, generation: 2 });
    await to.arrived(1);
    await ended(id, { status: 'delivered' });
  });

  test('a disabled route keeps its messages, and sends them on when it is enabled', async () => {
    const to = await receiver();
    destination(to.url);
    suite.registry.put('route', routeRecord({ enabled: false }));
    worker();
    const id = await send();
    await eventually(async () => expect(await suite.redis.client.scard(`${prefix}{s0}:paused`)).toBe(1));
    expect((await delivery(id)).status).toBe('pending');
    expect(to.requests).toEqual([]);
    suite.registry.put('route', routeRecord({ enabled: true, generation: 2 }));
    await to.arrived(1);
    await ended(id, { status: 'delivered' });
  });

  test('a destination that is deleted and that no route names sends its messages to the dead letters', async () => {
    suite.registry.put('route', routeRecord({ destinations: [] }));
    worker();
    await ended(await send(), { status: 'dlq', deadLetterReason: 'destination_not_found' });
  });

  test('messages wait for the record of a destination that their route names', async () => {
    const { url, arrived } = await receiver();
    worker();
    const id = await send();
    await eventually(async () => expect(await suite.redis.client.scard(`${prefix}{s0}:paused`)).toBe(1));
    expect((await delivery(id)).status).toBe('pending');
    destination(url);
    await arrived(1);
  });

  test('a route that is deleted sends its messages to the dead letters', async () => {
    destination('http://127.0.0.1:9/');
    suite.registry.remove('route', 'rte_a');
    worker();
    await ended(await send(), { status: 'dlq', deadLetterReason: 'route_deleted' });
  });
});

test('a target that hangs does not keep a healthy one waiting', async () => {
  const hanging = await receiver(() => {});
  const healthy = await receiver();
  suite.registry.put('destination', destinationRecord({ url: hanging.url, timeoutMs: 300_000 }, { id: 'dst_hang' }));
  destination(healthy.url);
  worker({ concurrency: 32 });
  for (let i = 0; i < 100; i++) await send({ destinations: ['dst_hang'] });
  await hanging.arrived(8);
  for (let i = 0; i < 20; i++) await send();
  await healthy.arrived(20);
});

test('stopping finishes what is under way and leaves the rest to the next worker', async () => {
  const to = await receiver((response) => setTimeout(() => response.end('ok'), 300));
  destination(to.url);
  const first = worker({ workerId: 'w_first' });
  const id = await send();
  await to.arrived(1);
  await first.stop(30_000);
  expect(await delivery(id)).toMatchObject({ status: 'delivered', attempts: 1 });
  const later = await send();
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(to.requests).toHaveLength(1);
  // Another process has a registry of its own.
  const registry = new RecordRegistry();
  registry.put('organization', organizationRecord());
  registry.put('route', routeRecord());
  registry.put('destination', destinationRecord({ url: to.url }));
  worker({ workerId: 'w_second', registry });
  await ended(later, { status: 'delivered' });
});

test('what is accepted before Redis is killed is delivered after it is back', async () => {
  const own = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always']);
  ends.push(() => own.stop());
  const to = await receiver();
  const owned = new RedisMessageAcceptor({ redis: own.client, prefix, clock: lenientClock });
  const delivery = startTestDelivery(own, { prefix, registry: suite.registry });
  ends.push(() => delivery.stop(1000));
  const event = newEvent();
  await owned.accept(event);
  await own.kill('SIGKILL');
  await expect(owned.accept(newEvent())).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  destination(to.url);
  await own.start();
  const after = newEvent();
  await eventually(() => owned.accept(after));
  await to.arrived(1);
  await eventually(async () => {
    const ids = to.requests.map(({ headers }) => headers['webhook-id']);
    expect(ids).toContain(after.targets[0]?.messageId);
  });
});
