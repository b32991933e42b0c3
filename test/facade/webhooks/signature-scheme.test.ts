import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ed25519Key } from '../../../src/core/ed25519-keys.ts';
import { webhookSecretSealingContext } from '../../../src/core/sealing-contexts.ts';
import { changeStreamBlockMs } from '../../../src/data/registry/change-stream.ts';
import { WebhookDirectory } from '../../../src/data/webhooks/webhook-directory.ts';
import { blockingConnection } from '../../../src/redis/connection.ts';
import { systemClock } from '../../../src/runtime/system-clock.ts';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { testKeyring } from '../../support/controllers.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/logger.ts';
import { MemoryDirectory } from '../../support/memory-directory.ts';
import { startTlsReceiver } from '../../support/tls-receiver.ts';
import { signaturesOf, verifiesV1a } from '../../support/v1a-verification.ts';
import { verifies } from '../../support/webhook-verification.ts';
import { type FacadeWorld, startFacadeWorld } from '../facade-world.ts';

const publicKeyForm = /^whpk_[A-Za-z0-9+/]{43}=$/;
let world: FacadeWorld;
let org: string;
let applicationId: string;

beforeAll(async () => {
  world = await startFacadeWorld({ inForceTimeoutMs: 20_000 });
  org = await world.organizationId('acme');
  applicationId = (await world.request('POST', '/api/webhook-applications', { body: { name: 'Customer' } })).body.data.id;
});
afterAll(() => world?.stop());

const url = 'https://customer.example/hooks';
const create = (body: object = {}) => world.request('POST', '/api/webhook-endpoints', { body: { applicationId, url, ...body } });
const read = async (id: string, key?: string) =>
  (await world.request('GET', `/api/webhook-endpoints/${id}`, key === undefined ? {} : { key })).body.data;
const change = (id: string, body: object) => world.request('PATCH', `/api/webhook-endpoints/${id}`, { body });
const rotate = (id: string, body: object = {}) => world.request('POST', `/api/webhook-endpoints/${id}/rotate-secret`, { body });
const stored = async (id: string) => {
  const endpoint = await world.webhooks.endpoint(org, id);
  if (endpoint === null) throw new Error('there is no such endpoint');
  return endpoint;
};
const openedKey = async (id: string): Promise<string> =>
  testKeyring.open((await stored(id)).signingKey?.sealed ?? '', webhookSecretSealingContext(org, id));

describe('an endpoint with a signature scheme', () => {
  test.each(['ed25519', 'both'])(
    'an endpoint with a signature scheme is made with a key of its own for %s; the answers have the public key alone',
    async (signatureScheme) => {
      const { status, body } = await create({ signatureScheme });
      const { id, publicKey } = body.data;
      expect([status, body.data]).toEqual([201, expect.objectContaining({ signatureScheme, previousPublicKeys: [] })]);
      expect(publicKey).toMatch(publicKeyForm);
      const key = await openedKey(id);
      expect(ed25519Key(key)).toMatchObject({ publicKey });
      const viewer = await world.addKey('acme', { role: 'viewer' });
      expect((await read(id, viewer)).publicKey).toBe(publicKey);
      const listed = await world.request('GET', '/api/webhook-endpoints?limit=1', {});
      for (const answer of [body, await read(id), listed.body]) expect(JSON.stringify(answer)).not.toContain('whsk_');
      expect(world.logLines.join('\n')).not.toContain(key.slice(5));
      expect(JSON.stringify(await stored(id))).not.toContain(key.slice(5, 40));
    },
  );

  test.each(['v1a', null, ['ed25519']])('an endpoint with a signature scheme is not made with %j', async (signatureScheme) => {
    const { status, body } = await create({ signatureScheme });
    expect([status, body.details]).toEqual([400, { signatureScheme: [expect.any(String)] }]);
  });

  test('an endpoint with a signature scheme changes from v1 to both and v1a and back; secret and key stay the same all the while', async () => {
    const { id, publicKey: none } = (await create()).body.data;
    const { secret } = await stored(id);
    expect(none).toBeNull();
    const { publicKey } = (await change(id, { signatureScheme: 'both' })).body.data;
    expect(publicKey).toMatch(publicKeyForm);
    for (const signatureScheme of ['ed25519', 'hmac-sha256', 'ed25519', 'both'])
      expect((await change(id, { signatureScheme, description: signatureScheme })).body.data).toMatchObject({
        signatureScheme,
        publicKey,
        secretVersion: 1,
        previousPublicKeys: [],
      });
    expect((await change(id, { timeoutSeconds: 5 })).body.data).toMatchObject({ signatureScheme: 'both', publicKey });
    expect((await stored(id)).secret).toEqual(secret);
  });

  test('an endpoint with a signature scheme has one key, whose public key every answer has, when several requests change its scheme at the same time', async () => {
    const { id } = (await create()).body.data;
    const answers = await Promise.all(Array.from({ length: 8 }, () => change(id, { signatureScheme: 'both' })));
    const keys = new Set(answers.map(({ body }) => body.data.publicKey));
    expect([...keys]).toEqual([(await read(id)).publicKey]);
  });

  test('an endpoint with a signature scheme takes what a read shows back as it is', async () => {
    const { id } = (await create({ signatureScheme: 'both' })).body.data;
    const shown = await read(id);
    const { publicKey, updatedAt } = (await change(id, { ...shown, publicKey: 'whpk_other', previousPublicKeys: [1] })).body.data;
    expect([publicKey, updatedAt]).toEqual([shown.publicKey, shown.updatedAt]);
  });
});

describe('rotating', () => {
  test('rotating replaces the key beside the secret, and the record shows until when the old one signs', async () => {
    const { id, publicKey: first } = (await create({ signatureScheme: 'ed25519' })).body.data;
    const { body } = await rotate(id, { gracePeriodSeconds: 600 });
    expect(body).toMatchObject({
      secret: expect.stringMatching(/^whsec_/),
      publicKey: expect.stringMatching(publicKeyForm),
      secretVersion: 2,
    });
    expect(body.publicKey).not.toBe(first);
    expect(body).toMatchObject({ signatureScheme: 'ed25519', previousPublicKey: first });
    const previousPublicKeys = [{ publicKey: first, expiresAt: body.previousSecretExpiresAt }];
    expect(await read(id)).toMatchObject({ publicKey: body.publicKey, previousPublicKeys });
    const again = (await rotate(id, { gracePeriodSeconds: 0 })).body;
    expect(await read(id)).toMatchObject({ publicKey: again.publicKey, previousPublicKeys: [], secretVersion: 3 });
  });

  test('rotating an endpoint without a key makes none', async () => {
    const { id } = (await create()).body.data;
    expect((await rotate(id)).body).toMatchObject({ publicKey: null, secretVersion: 2 });
    expect((await stored(id)).signingKey).toBeNull();
  });

  test('an old public key is shown no longer than its key signs', async () => {
    const { id } = (await create({ signatureScheme: 'both' })).body.data;
    await rotate(id, { gracePeriodSeconds: 1 });
    await eventually(async () => expect((await read(id)).previousPublicKeys).toEqual([]));
  });

  test('rotating again with the same idempotency key answers the same public key', async () => {
    const { id } = (await create({ signatureScheme: 'both' })).body.data;
    const headers = { 'idempotency-key': 'rotate-once' };
    const twice = async () => (await world.request('POST', `/api/webhook-endpoints/${id}/rotate-secret`, { body: {}, headers })).body;
    const once = await twice();
    expect(await twice()).toEqual(once);
    expect((await read(id)).publicKey).toBe(once.publicKey);
  });
});

test('messages of an endpoint that the API made and of one that Git declares are signed alike, through rotation and replay', async () => {
  const authority = createCertificateAuthority();
  const receiver = await startTlsReceiver({ tls: authority.issue(['127.0.0.1']), address: '127.0.0.1' });
  const blocking = blockingConnection(world.redis.url, { blockMs: changeStreamBlockMs });
  const shared = { redis: world.redis.client, prefix: 'test:', clock: systemClock, logger: silentLogger };
  const directory = new WebhookDirectory({ ...shared, blocking });
  directory.start();
  const webhooks = { ...new MemoryDirectory().sources(), directory, allowsInsecureUrls: false };
  const worker = await world.startWorker({ extraCa: authority.text, webhooks });
  try {
    const texts = [`whsec_${Buffer.alloc(32, 7).toString('base64')}`, 'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbc='];
    const publicKey = 'whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=';
    const options = { manager: 'kubectl', force: true };
    const declare = (kind: 'WebhookApplication' | 'WebhookEndpoint', name: string, spec: object) =>
      world.store.apply({ kind, metadata: { namespace: 'acme', name }, spec }, options);
    const put = (value: string) =>
      world.store.apply(
        { kind: 'Secret', metadata: { namespace: 'acme', name: 'signing' }, data: { secret: Buffer.from(value).toString('base64') } },
        options,
      );
    await put(texts.join(' '));
    await declare('WebhookApplication', 'shop', {});
    const spec = (more: object = {}) => ({
      applicationRef: { name: 'shop' },
      url: receiver.url('/declared'),
      signingSecretRef: { name: 'signing', key: 'secret' },
      signatureScheme: 'both',
      ...more,
    });
    await declare('WebhookEndpoint', 'hooks', spec());
    const declared = await eventually(async () => {
      const { status } = await world.store.get('WebhookEndpoint', { namespace: 'acme', name: 'hooks' });
      expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
      return status?.id ?? '';
    });
    expect(await read(declared)).toMatchObject({ signatureScheme: 'both', publicKey, previousPublicKeys: [], secretPrefix: 'whsec_BwcH…' });
    expect((await change(declared, { signatureScheme: 'ed25519' })).status).toBe(409);
    const made = (await create({ url: receiver.url('/made'), signatureScheme: 'both' })).body.data;
    const type = (await world.request('POST', '/api/event-types', { body: { name: 'order.signed' } })).body.data;
    for (const endpointId of [declared, made.id])
      await world.request('POST', '/api/webhook-subscriptions', { body: { endpointId, eventTypeId: type.id } });
    const send = () => world.request('POST', '/api/send-event', { body: { eventType: type.name, payload: { id: 'o-17' } } });
    await eventually(async () => expect((await send()).body.data.messagesQueued).toBe(2));
    const of = (path: string) => receiver.requests.filter((request) => request.path === path);
    const newest = async (path: string, from: number) => {
      await eventually(() => expect(of(path).length).toBeGreaterThan(from));
      const request = of(path).at(-1);
      if (request === undefined) throw new Error('nothing arrived');
      return request;
    };
    for (const [path, key, secret] of [
      ['/declared', publicKey, texts[0]],
      ['/made', made.publicKey, made.secret],
    ]) {
      const request = await newest(path, 0);
      expect([verifiesV1a(request, key), verifies(request, secret)]).toEqual([true, true]);
      expect(signaturesOf(request.headers).map(({ version }) => version)).toEqual(['v1', 'v1a']);
    }
    // Both worlds rotate with an overlap.
    const newer = 'whsk_TQuCZ5z9fIDfEWpUSY7hFNYRvQYbyR4B6QmYs4iKUMI=';
    await put([texts[0], newer, texts[1]].join('\n'));
    const { publicKey: madeNow } = (await rotate(made.id)).body;
    const declaredNow = await eventually(async () => {
      const shown = await read(declared);
      expect(shown).toMatchObject({ previousPublicKeys: [{ publicKey, expiresAt: null }], secretVersion: 2 });
      return shown.publicKey;
    });
    // Until the worker has received it, the old key alone signs.
    for (const [path, now, before] of [
      ['/declared', declaredNow, publicKey],
      ['/made', madeNow, made.publicKey],
    ])
      await eventually(`${path} to be signed with both keys`, 30_000, async () => {
        const from = of(path).length;
        await send();
        const request = await newest(path, from);
        return verifiesV1a(request, now) && verifiesV1a(request, before);
      });
    const [message] = (await world.request('GET', `/api/outbound-messages?endpointId=${made.id}&limit=1`, {})).body.data;
    const from = of('/made').length;
    expect((await world.request('POST', `/api/outbound-messages/${message.id}/replay`, { body: {} })).status).toBeLessThan(300);
    expect(verifiesV1a(await newest('/made', from), madeNow)).toBe(true);
    // A malformed key shows as a condition, and what was in force stays.
    await put(`${texts[0]} whsk_AAAA`);
    await eventually(async () => {
      const { status } = await world.store.get('WebhookEndpoint', { namespace: 'acme', name: 'hooks' });
      const accepted = status?.conditions?.find(({ type: each }) => each === 'Accepted');
      expect(accepted).toMatchObject({ status: 'False', reason: 'InvalidSigningSecret' });
      expect(accepted?.message).toContain('contains a whsk_ key that is not whsk_ followed by the base64 of 32 bytes');
    });
    expect((await read(declared)).publicKey).toBe(declaredNow);
  } finally {
    await worker.stop(1000);
    await directory.stop();
    await receiver.stop();
    authority.remove();
  }
}, 180_000);
