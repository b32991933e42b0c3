import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { createCertificateAuthority } from '../../../test/support/certificate-authority.ts';
import { testKeyring } from '../../../test/support/controllers.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { largeJson, mebibyte } from '../../../test/support/large-payloads.ts';
import { MemoryDirectory, webhookApplication, webhookEndpoint } from '../../../test/support/memory-directory.ts';
import { newEvent } from '../../../test/support/new-event.ts';
import { publishRecords } from '../../../test/support/published-records.ts';
import { destinationRecord, routeRecord, transformRecord } from '../../../test/support/records.ts';
import { expectShortTurns } from '../../../test/support/short-work.ts';
import { startTlsReceiver } from '../../../test/support/tls-receiver.ts';
import { signaturesOf, verifiesV1a } from '../../../test/support/v1a-verification.ts';
import { newWebhookEvent } from '../../../test/support/webhook-messages.ts';
import { verifies } from '../../../test/support/webhook-verification.ts';
import { ed25519Key, newSigningKey } from '../../core/ed25519-keys.ts';
import { recordSealingContext, webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import type { SignatureScheme } from '../../core/signature-scheme.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import { RedisMessageReplayer } from '../../data/history/message-replayer.ts';
import type { WebhookEndpoint } from '../../data/webhooks/webhooks.ts';
import { systemClock } from '../../runtime/system-clock.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const [key, oldKey] = [newSigningKey(), newSigningKey()] as const;
const publicKeyOf = (text: string): string => {
  const made = ed25519Key(text);
  if (made.problem !== undefined) throw new Error(made.problem);
  return made.publicKey;
};
const [publicKey, oldPublicKey] = [publicKeyOf(key), publicKeyOf(oldKey)] as const;
const suite = deliverySuite();
const { prefix, ends, receiver, worker } = suite;
let replayer: RedisMessageReplayer;

beforeAll(() => {
  replayer = new RedisMessageReplayer({ redis: suite.redis.client, prefix, clock: systemClock });
});

/** The lines of the metric that are not 0. */
async function counted(metrics: Registry): Promise<string[]> {
  const lines = (await metrics.metrics()).split('\n').filter((line) => line.startsWith('posthorn_delivery_requests_total{'));
  return lines.filter((line) => !line.endsWith(' 0')).map((line) => line.slice(line.indexOf('{')));
}
const versions = ({ headers }: Parameters<typeof verifiesV1a>[0]): string[] => signaturesOf(headers).map(({ version }) => version);

describe('a destination', () => {
  const sealed = (texts: readonly string[], id = 'dst_a'): string[] =>
    texts.map((text) => testKeyring.seal(text, recordSealingContext('org_a', 'destination', id, 'signingSecrets')));
  const record = (url: string, texts: readonly string[], changes: Parameters<typeof destinationRecord>[1] = {}) =>
    destinationRecord({ url, signingSecrets: sealed(texts, changes?.id) }, changes);
  async function send(changes: Parameters<typeof newEvent>[0] = {}): Promise<string> {
    const event = newEvent(changes);
    await suite.acceptor.accept(event);
    return event.targets[0]?.messageId ?? '';
  }

  beforeEach(() => suite.registry.put('route', routeRecord()));

  test.each<[string, string[], string[], SignatureScheme]>([
    ['a key', [key], ['v1a'], 'ed25519'],
    ['a secret and a key', [secret, key], ['v1', 'v1a'], 'both'],
    ['a secret alone', [secret], ['v1'], 'hmac-sha256'],
  ])(
    'a destination with %s signs over TLS what independent verifiers accept, and the attempt says with what',
    async (_, texts, expected, scheme) => {
      const authority = createCertificateAuthority();
      ends.push(async () => authority.remove());
      const to = await startTlsReceiver({ tls: authority.issue(['127.0.0.1']), address: '127.0.0.1' });
      ends.push(() => to.stop());
      const tls = { ca: authority.text, clientCertificate: null, clientKey: null };
      suite.registry.put('destination', destinationRecord({ url: to.url(), tls, signingSecrets: sealed(texts) }));
      worker();
      const id = await send({ payload: Buffer.from('{"a": 1.0}') });
      await suite.becomes(id, { status: 'delivered', lastSentAs: { isThin: false, scheme } });
      expect(await suite.reader.attempts('org_a', id)).toMatchObject([{ sentAs: { isThin: false, scheme } }]);
      const [request] = to.requests;
      if (request === undefined) throw new Error('nothing arrived');
      expect(versions(request)).toEqual(expected);
      expect(verifies(request, secret)).toBe(texts.includes(secret));
      expect(verifiesV1a(request, publicKey)).toBe(texts.includes(key));
      expect(verifiesV1a(request, oldPublicKey)).toBe(false);
      expect(verifiesV1a({ ...request, body: Buffer.from('{"a": 1}') }, publicKey)).toBe(false);
    },
  );

  test('while a key is being replaced both sign; then the new one alone, also for a message that is being retried', async () => {
    const to = await receiver((response, number) => {
      if (number === 1) suite.registry.put('destination', record(to.url, [key], { generation: 2 }));
      response.writeHead(number === 1 ? 500 : 200).end();
    });
    suite.registry.put('destination', record(to.url, [key, oldKey]));
    worker();
    const id = await send();
    await suite.becomes(id, { status: 'delivered', attempts: 2 });
    await replayer.replay('org_a', id);
    const [first, ...later] = await to.arrived(3);
    if (first === undefined) throw new Error('nothing arrived');
    expect([versions(first), verifiesV1a(first, publicKey), verifiesV1a(first, oldPublicKey)]).toEqual([['v1a', 'v1a'], true, true]);
    for (const request of later)
      expect([versions(request), verifiesV1a(request, publicKey), verifiesV1a(request, oldPublicKey)]).toEqual([['v1a'], true, false]);
    // The retry is the same message; the replay is another one.
    expect(later.map(({ headers }) => headers['webhook-id'] === id)).toEqual([true, false]);
  });

  test('a destination with more secrets than a value may list, as in records of an earlier release, still signs with its newest keys', async () => {
    const to = await receiver();
    const secrets = Array.from({ length: 25 }, (_, i) => `whsec_${Buffer.alloc(32, i).toString('base64')}`);
    suite.registry.put('destination', record(to.url, [...secrets, key, oldKey]));
    worker();
    await send();
    const [request] = await to.arrived(1);
    if (request === undefined) throw new Error('nothing arrived');
    expect(versions(request)).toEqual([...Array.from({ length: 10 }, () => 'v1'), 'v1a', 'v1a']);
    expect([verifies(request, secrets[0] ?? ''), verifiesV1a(request, publicKey), verifiesV1a(request, oldPublicKey)]).toEqual([
      true,
      true,
      true,
    ]);
  });

  test('a message that fails over is signed with the key of the destination that it comes to, over the output of the transform', async () => {
    const [from, to] = [await receiver((response) => response.writeHead(500).end()), await receiver()];
    suite.registry.put('destination', record(from.url, [oldKey]));
    suite.registry.put('destination', record(to.url, [secret, key], { id: 'dst_b', slug: 'b' }));
    const failover = { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: 1 };
    suite.registry.put('route', routeRecord({ failover, transformId: 'trf_a' }));
    suite.registry.put('transform', transformRecord('{"b": 2}'));
    worker();
    await send();
    const [first] = await from.arrived(1);
    const [second] = await to.arrived(1);
    if (first === undefined || second === undefined) throw new Error('nothing arrived');
    expect([verifiesV1a(first, oldPublicKey), verifiesV1a(first, publicKey)]).toEqual([true, false]);
    expect([verifiesV1a(second, publicKey), verifies(second, secret), verifiesV1a(second, oldPublicKey)]).toEqual([true, true, false]);
    expect(second.body.toString()).toBe('{"b":2}');
  });

  test('a payload of 25 MiB has both signatures without a long turn of the event loop', async () => {
    const to = await receiver();
    suite.registry.put('destination', record(to.url, [secret, key, oldKey]));
    worker();
    const payload = largeJson(25 * mebibyte);
    await expectShortTurns(100, async () => {
      const event = newEvent({ payload });
      await suite.acceptor.accept(event);
      await suite.becomes(event.targets[0]?.messageId ?? '', { status: 'delivered', attempts: 1 });
    });
    for (const request of to.requests) {
      expect(request.body.equals(payload)).toBe(true);
      expect([verifies(request, secret), verifiesV1a(request, publicKey), verifiesV1a(request, oldPublicKey)]).toEqual([true, true, true]);
    }
  }, 120_000);

  test('a metric counts the attempts by what they send and what signs them, each attempt once', async () => {
    const to = await receiver((response, number) => response.writeHead(number === 1 ? 500 : 200).end());
    const metrics = new Registry();
    worker({ metrics });
    for (const [i, texts] of [[key], [secret, key], [secret], []].entries()) {
      suite.registry.put('destination', record(to.url, texts, { generation: i + 1 }));
      await suite.becomes(await send(), { status: 'delivered' });
    }
    const http = { url: to.url, signingSecrets: sealed([key]), payloadForm: 'thin' as const };
    const once = { maxRetries: 0, initialDelayMs: 1, maxDelayMs: 1, backoffMultiplier: 1 };
    suite.registry.put('destination', destinationRecord(http, { generation: 9, retryPolicy: once }));
    await suite.becomes(await send(), { status: 'dlq', attempts: 1 });
    expect((await counted(metrics)).sort()).toEqual([
      '{target="destination",form="full",scheme="both"} 1',
      '{target="destination",form="full",scheme="ed25519"} 2',
      '{target="destination",form="full",scheme="hmac-sha256"} 1',
      '{target="destination",form="full",scheme="none"} 1',
      '{target="destination",form="thin",scheme="ed25519"} 1',
    ]);
  });

  test('a key that is none ends the message unsent; the answer of a receiver does not repeat a key that signs', async () => {
    const to = await receiver((response) => response.writeHead(500).end(`you have ${key.slice(5)}, I have ${key}`));
    suite.registry.put('destination', record(to.url, [`whsk_${Buffer.alloc(64, 1).toString('base64')}`]));
    worker();
    await suite.becomes(await send(), { status: 'dlq', deadLetterReason: 'secret_decryption_failed', attempts: 0 });
    expect(to.requests).toEqual([]);
    suite.registry.put('destination', record(to.url, [key], { generation: 2 }));
    const id = await send();
    await to.arrived(1);
    await eventually(async () => {
      const [attempt] = await suite.reader.attempts('org_a', id);
      expect(attempt?.responseBody).toContain('you have');
      expect(JSON.stringify(attempt)).not.toContain(key.slice(5, 30));
    });
  });

  test('a worker that takes over from one that was killed in an attempt signs with the same keys', async () => {
    const to = await receiver((response, number) => {
      if (number > 1) response.end();
    });
    await publishRecords(suite.redis.client, prefix, { route: routeRecord(), destination: record(to.url, [secret, key]) });
    const first = await suite.program();
    const id = await send();
    await to.arrived(1, 60_000);
    first.signal('SIGKILL');
    await first.ended;
    await suite.program();
    for (const request of await to.arrived(2, 60_000))
      expect([request.headers['webhook-id'], verifies(request, secret), verifiesV1a(request, publicKey)]).toEqual([id, true, true]);
  }, 180_000);
});

describe('a webhook endpoint', () => {
  const org = webhookOrganization('org_a');
  const seal = (text: string): string => testKeyring.seal(text, webhookSecretSealingContext('org_a', 'ep_a'));
  const signingKey: WebhookEndpoint['signingKey'] = { sealed: seal(key), publicKey, previous: [] };
  const ofEndpoint = { prefix: 'whsec_BwcH', version: 1, previous: [], sealed: seal(secret) };
  let directory: MemoryDirectory;

  beforeEach(() => {
    directory = new MemoryDirectory();
    directory.putApplication(webhookApplication());
  });

  function endpoint(url: string, changes: Partial<WebhookEndpoint>): WebhookEndpoint {
    const made = webhookEndpoint({ url, secret: ofEndpoint, ...changes });
    directory.putEndpoint(made);
    return made;
  }
  const start = (metrics = new Registry()) => worker({ metrics, webhooks: { ...directory.sources(), retries: { delaysMs: [50, 100] } } });
  async function send(to: WebhookEndpoint): Promise<string> {
    const event = newWebhookEvent('org_a', [to]);
    await suite.acceptor.accept(event);
    return event.targets[0]?.messageId ?? '';
  }
  const becomes = (id: string, expected: object) =>
    eventually(async () => expect(await suite.reader.delivery(org, id)).toMatchObject(expected));

  test.each<[WebhookEndpoint['signatureScheme'], string[], boolean, boolean]>([
    ['hmac-sha256', ['v1'], true, false],
    ['ed25519', ['v1a'], false, true],
    ['both', ['v1', 'v1a'], true, true],
  ])('a webhook endpoint of the scheme %s is sent %j', async (signatureScheme, expected, isV1, isV1a) => {
    const to = await receiver();
    const made = endpoint(to.url, { signatureScheme, signingKey });
    const metrics = new Registry();
    start(metrics);
    await becomes(await send(made), { status: 'delivered' });
    const [request] = await to.arrived(1);
    if (request === undefined) throw new Error('nothing arrived');
    expect([versions(request), verifies(request, secret), verifiesV1a(request, publicKey)]).toEqual([expected, isV1, isV1a]);
    expect(await counted(metrics)).toEqual([`{target="endpoint",form="full",scheme="${signatureScheme}"} 1`]);
  });

  test('an old key signs beside the new one until its end, and not after it', async () => {
    const to = await receiver();
    const previous = [{ sealed: seal(oldKey), publicKey: oldPublicKey, validUntilMs: Date.now() + 60_000 }];
    const made = endpoint(to.url, { signatureScheme: 'ed25519', signingKey: { sealed: seal(key), publicKey, previous } });
    start();
    await send(made);
    await to.arrived(1);
    const ended = previous.map((old) => ({ ...old, validUntilMs: Date.now() - 1 }));
    await send(
      endpoint(to.url, { signatureScheme: 'ed25519', revision: 2, signingKey: { sealed: seal(key), publicKey, previous: ended } }),
    );
    const requests = await to.arrived(2);
    expect(requests.map((request) => [verifiesV1a(request, publicKey), verifiesV1a(request, oldPublicKey)])).toEqual([
      [true, true],
      [true, false],
    ]);
  });

  test('a scheme that changes holds for the next attempt of a message that is being retried', async () => {
    const to = await receiver((response, number) => {
      if (number === 1) endpoint(to.url, { signatureScheme: 'ed25519', signingKey, revision: 2 });
      response.writeHead(number === 1 ? 500 : 200).end();
    });
    const made = endpoint(to.url, {});
    start();
    const id = await send(made);
    await becomes(id, { status: 'delivered', attempts: 2 });
    expect(to.requests.map(versions)).toEqual([['v1'], ['v1a']]);
    const sent = (await suite.reader.attempts(org, id)).map(({ sentAs }) => sentAs);
    expect(sent).toEqual([undefined, { isThin: false, scheme: 'ed25519' }]);
    expect(to.requests.map(({ headers }) => headers['webhook-id'])).toEqual([id, id]);
  });

  test.each<[string, WebhookEndpoint['signingKey']]>([
    ['does not open', { sealed: 'of another keyring', publicKey, previous: [] }],
    ['is not there', null],
  ])('a key that %s ends the message as a dead letter; nothing is sent unsigned', async (_, broken) => {
    const to = await receiver();
    const made = endpoint(to.url, { signatureScheme: 'ed25519', signingKey: broken });
    start();
    await becomes(await send(made), { status: 'dlq', attempts: 0, deadLetterReason: 'secret_decryption_failed' });
    expect(to.requests).toEqual([]);
    // Keys that the scheme does not use need not open.
    await send(endpoint(to.url, { signatureScheme: 'hmac-sha256', signingKey: broken, revision: 2 }));
    const [request] = await to.arrived(1);
    if (request === undefined) throw new Error('nothing arrived');
    expect(verifies(request, secret)).toBe(true);
  });
});
