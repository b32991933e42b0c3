import { expect, test } from '@jest/globals';
import { testKeyring } from '../../../test/support/controllers.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { ownEventData } from '../../../test/support/own-events.ts';
import {
  conditionOf,
  eachWithWebhookControllers,
  signingSecret,
  type WebhookControllers,
} from '../../../test/support/webhook-controllers.ts';
import { ed25519Key, newSigningKey } from '../../core/ed25519-keys.ts';
import { webhookSecretSealingContext } from '../../core/sealing-contexts.ts';
import { disableEndpoint } from '../../data/webhooks/disable-endpoint.ts';

let world: WebhookControllers;
let told: () => Promise<Record<string, unknown>[]>;

eachWithWebhookControllers((made) => {
  ({ world } = made);
  told = () => ownEventData(made.redis.client, made.prefix);
});

const apply = (spec: object = {}, name = 'hooks') =>
  world.apply('WebhookEndpoint', name, {
    applicationRef: { name: 'shop' },
    url: 'https://shop.example/hooks',
    signingSecretRef: { name: 'signing', key: 'secret' },
    ...spec,
  });
const seen = (reason?: string) => world.seen('WebhookEndpoint', 'hooks', reason);
async function ready(): Promise<string> {
  return (await seen()).status?.id ?? '';
}
async function stored(id: string) {
  const endpoint = await world.webhooks.endpoint(world.org, id);
  if (endpoint === null) throw new Error('there is no such endpoint');
  return endpoint;
}

test('an endpoint is in the webhook store as it is declared, below its application, with its secret sealed', async () => {
  await apply({ headers: [{ name: 'x-tenant', value: '17' }], timeoutSeconds: 5, circuit: { cooldownSeconds: 7 } });
  const id = await ready();
  expect(id).toMatch(/^ep_/);
  const endpoint = await stored(id);
  expect(endpoint).toMatchObject({
    applicationId: await world.idOf('WebhookApplication', 'shop'),
    url: 'https://shop.example/hooks',
    description: null,
    headers: [{ name: 'x-tenant', value: '17' }],
    timeoutSeconds: 5,
    rateLimitPerSecond: 0,
    circuit: { failureThreshold: 5, successThreshold: 2, cooldownSeconds: 7 },
    isDisabled: false,
    managedBy: 'acme/hooks',
    secret: { prefix: signingSecret(1).slice(0, 10), version: 1, previous: [] },
  });
  expect(testKeyring.open(endpoint.secret.sealed, webhookSecretSealingContext(world.org, id))).toBe(signingSecret(1));
  const own = { retryDelaysSeconds: [5, 60], expiresAfterSeconds: 3600, successStatusCodes: ['2xx', 409], ordered: true };
  await apply({ description: 'Orders', rateLimitPerSecond: 9, ...own });
  await ready();
  expect(await stored(id)).toMatchObject({
    description: 'Orders',
    ...own,
    rateLimitPerSecond: 9,
    timeoutSeconds: 30,
    headers: [],
    secret: endpoint.secret,
  });
});

test('its secret is replaced through the Secret: the new one with the old one behind it, then alone', async () => {
  await apply();
  const id = await ready();
  const first = await stored(id);
  await world.secret(`${signingSecret(2)} ${signingSecret(1)}\n`);
  await eventually(async () => expect((await stored(id)).secret).toMatchObject({ version: 2, prefix: signingSecret(2).slice(0, 10) }));
  const { secret } = await stored(id);
  expect(secret.previous).toEqual([{ sealed: first.secret.sealed, validUntilMs: Date.parse('9999-12-31T23:59:59Z') }]);
  await world.secret(signingSecret(2));
  await eventually(async () => expect((await stored(id)).secret).toEqual({ ...secret, previous: [] }));
});

test('what is replaced in the Secret while nobody leads is replaced by the next leader', async () => {
  await apply();
  const id = await ready();
  await world.stop();
  await world.secret(`${signingSecret(2)} ${signingSecret(1)}`);
  world.start();
  await eventually(async () => expect((await stored(id)).secret).toMatchObject({ version: 2, previous: [expect.anything()] }));
});

test('what is replaced in the Secret is reported once to a source for own events; what is only removed from it is not, nor is what every leader finds', async () => {
  await world.apply('Source', 'own', { provider: 'posthorn' });
  await world.seen('Source', 'own');
  await apply();
  const id = await ready();
  await world.secret(`${signingSecret(2)} ${signingSecret(1)}`);
  await eventually(async () => expect((await stored(id)).secret.version).toBe(2));
  await world.secret(signingSecret(2));
  await eventually(async () => expect((await stored(id)).secret.previous).toEqual([]));
  await world.stop();
  await world.secret(signingSecret(3));
  world.start();
  await eventually(async () => expect((await stored(id)).secret.version).toBe(3));
  await apply({ description: 'seen by the leader' });
  await eventually(async () => expect((await stored(id)).description).toBe('seen by the leader'));
  const of = (secretVersion: number, previousSecretExpiresAt: string | null) =>
    expect.objectContaining({ kind: 'endpoint', endpointId: id, secretVersion, by: 'resource', previousSecretExpiresAt });
  expect(await told()).toEqual([of(2, '9999-12-31T23:59:59.000Z'), of(3, null)]);
});

test.each([
  ['a password', 'InvalidSigningSecret'],
  [Array.from({ length: 6 }, (_, i) => signingSecret(i)).join(' '), 'InvalidSigningSecret'],
])('a Secret of %.10j is not accepted, and what was in force before stays', async (value, reason) => {
  await apply();
  const before = await stored(await ready());
  await world.secret(value);
  const object = await seen(reason);
  expect(conditionOf(object, 'Programmed')).toMatchObject({ reason: 'EarlierInForce' });
  expect(JSON.stringify(object.status)).not.toContain(value);
  expect(await stored(before.id)).toEqual(before);
});

const [key, nextKey] = [newSigningKey(), newSigningKey()] as const;
const publicKeyOf = (text: string): string => {
  const made = ed25519Key(text);
  return made.problem === undefined ? made.publicKey : '';
};

test('an endpoint that is signed with Ed25519 alone needs no other secret, and a reader without support for such keys finds none that is empty', async () => {
  await world.secret(key);
  await apply({ signatureScheme: 'ed25519' });
  const id = await ready();
  const { secret, signingKey, signatureScheme } = await stored(id);
  expect(signatureScheme).toBe('ed25519');
  expect(signingKey).toEqual({ sealed: expect.any(String), publicKey: publicKeyOf(key), previous: [] });
  const context = webhookSecretSealingContext(world.org, id);
  expect(testKeyring.open(signingKey?.sealed ?? '', context)).toBe(key);
  expect(secret).toEqual({ sealed: signingKey?.sealed, prefix: 'whsk_', version: 1, previous: [] });
});

test('the keys of an endpoint are replaced through the Secret, which is reported once, and the scheme may change beside them', async () => {
  await world.apply('Source', 'own', { provider: 'posthorn' });
  await world.seen('Source', 'own');
  await apply();
  const id = await ready();
  const first = await stored(id);
  await world.secret(`${signingSecret(1)} ${key}`);
  await eventually(async () => expect((await stored(id)).signingKey?.publicKey).toBe(publicKeyOf(key)));
  await apply({ signatureScheme: 'both' });
  await eventually(async () => expect(await stored(id)).toMatchObject({ signatureScheme: 'both', secret: first.secret }));
  const { sealed } = (await stored(id)).signingKey ?? {};
  await world.secret(`${signingSecret(1)} ${nextKey} ${key}`);
  await eventually(async () =>
    expect(await stored(id)).toMatchObject({
      secret: { sealed: first.secret.sealed, version: 2 },
      signingKey: { publicKey: publicKeyOf(nextKey), previous: [{ sealed, publicKey: publicKeyOf(key) }] },
    }),
  );
  await world.secret(`${signingSecret(1)} ${nextKey}`);
  await apply({ signatureScheme: 'ed25519' });
  await eventually(async () => expect(await stored(id)).toMatchObject({ signatureScheme: 'ed25519', signingKey: { previous: [] } }));
  expect(await stored(id)).toMatchObject({ secret: { ...first.secret, version: 2 } });
  await apply();
  await eventually(async () => expect(await stored(id)).toMatchObject({ signatureScheme: 'hmac-sha256' }));
  expect(await told()).toEqual([
    expect.objectContaining({ endpointId: id, secretVersion: 2, previousSecretExpiresAt: '9999-12-31T23:59:59.000Z' }),
  ]);
});

test.each([
  [key, {}, 'contains no whsec_ secret, which signatureScheme hmac-sha256 needs'],
  [signingSecret(1), { signatureScheme: 'ed25519' }, 'contains no whsk_ key, which signatureScheme ed25519 needs'],
  [
    `${signingSecret(1)} whsk_AAAA`,
    { signatureScheme: 'both' },
    'contains a whsk_ key that is not whsk_ followed by the base64 of 32 bytes',
  ],
  [publicKeyOf(key), { signatureScheme: 'ed25519' }, 'contains a whpk_ key, which is public and signs nothing'],
  [Array.from({ length: 6 }, newSigningKey).join(' '), { signatureScheme: 'ed25519' }, 'contains more than 5 secrets'],
])('a Secret of %.8s… with %j is not accepted, and the message says why', async (value, spec, why) => {
  await world.secret(value);
  await apply(spec);
  const object = await seen('InvalidSigningSecret');
  expect(conditionOf(object, 'Accepted')?.message).toContain(`the value behind spec.signingSecretRef ${why}`);
  for (const text of value.split(' ')) if (text.length > 20) expect(JSON.stringify(object.status)).not.toContain(text.slice(5));
});

test('an endpoint waits for its Secret, and comes into force with it', async () => {
  await world.store.delete('Secret', { namespace: 'acme', name: 'signing' });
  await apply();
  await seen('SecretNotFound');
  await world.secret(signingSecret(3));
  await ready();
});

test('an endpoint without its Secret is disabled when its spec is, and all else that was in force stays', async () => {
  await apply();
  const before = await stored(await ready());
  await world.store.delete('Secret', { namespace: 'acme', name: 'signing' });
  await seen('SecretNotFound');
  expect(await stored(before.id)).toEqual(before);
  await apply({ enabled: false, disabledReason: 'Moved.', url: 'https://shop.example/moved' });
  expect(conditionOf(await seen('SecretNotFound'), 'Programmed')).toMatchObject({ reason: 'EarlierInForce' });
  expect(await stored(before.id)).toMatchObject({ isDisabled: true, disabledReason: 'Moved.', url: before.url, secret: before.secret });
});

test.each([
  ['https://shop\ufffd.example/', 'InvalidUrl'],
  ['http://shop.example/', 'InsecureUrl'],
  ['HTTP://shop.example/', 'InsecureUrl'],
])('the URL %s is not accepted', async (url, reason) => {
  await apply({ url });
  expect(conditionOf(await seen(reason), 'Stalled')).toMatchObject({ status: 'True' });
});

test('applied before its application it comes into force at once with that', async () => {
  await apply({ applicationRef: { name: 'later' } });
  await seen('ApplicationNotFound');
  await world.apply('WebhookApplication', 'later', {});
  await ready();
});

test('an endpoint below an application that is not accepted is not in force', async () => {
  const other = await world.webhooks.createApplication({ org: world.org, name: 'Made', externalId: 'one', shard: 0 });
  await world.apply('WebhookApplication', 'later', { externalId: 'one' });
  await apply({ applicationRef: { name: 'later' } });
  await seen('ApplicationNotProgrammed');
  await world.webhooks.deleteApplication(world.org, other.id);
  await ready();
});

test('an endpoint ends with its application, and comes back below another of the same name', async () => {
  await apply();
  const id = await ready();
  const { applicationId } = await stored(id);
  await world.delete('WebhookApplication', 'shop');
  // The controllers may be about to report the endpoint as programmed.
  await eventually(async () =>
    expect(conditionOf(await seen('ApplicationNotFound'), 'Programmed')).toMatchObject({ reason: 'NothingInForce' }),
  );
  expect(await world.webhooks.endpoint(world.org, id)).toBeNull();
  await world.apply('WebhookApplication', 'shop', {});
  await ready();
  expect((await stored(id)).applicationId).not.toBe(applicationId);
});

test('an application that was recreated while nobody led takes it over', async () => {
  await apply();
  const id = await ready();
  const { applicationId } = await stored(id);
  await world.stop();
  await world.delete('WebhookApplication', 'shop');
  await world.apply('WebhookApplication', 'shop', {});
  world.start();
  await eventually(async () => expect((await stored(id)).applicationId).not.toBe(applicationId));
});

test('what a 410 disabled stays so, also for the next leader, until the spec is changed', async () => {
  await apply();
  const id = await ready();
  await disableEndpoint(world.webhooks, { org: world.org, id, disabledReason: 'gone' });
  await world.secret(signingSecret(4));
  await eventually(async () => expect((await stored(id)).secret.version).toBe(2));
  await world.stop();
  world.start();
  await world.secret(signingSecret(5));
  await eventually(async () => expect((await stored(id)).secret.version).toBe(3));
  expect(await stored(id)).toMatchObject({ isDisabled: true, disabledReason: 'gone' });
  await apply({ url: 'https://shop.example/moved' });
  await eventually(async () =>
    expect(await stored(id)).toMatchObject({ isDisabled: false, disabledReason: null, url: 'https://shop.example/moved' }),
  );
  await apply({ enabled: false, disabledReason: 'Moved.' });
  await eventually(async () => expect(await stored(id)).toMatchObject({ isDisabled: true, disabledReason: 'Moved.' }));
});

test('a deleted endpoint is gone, also when no process led', async () => {
  await apply();
  const id = await ready();
  await world.delete('WebhookEndpoint', 'hooks');
  await eventually(async () => expect(await world.webhooks.endpoint(world.org, id)).toBeNull());
  await apply();
  const second = await ready();
  await world.stop();
  await world.delete('WebhookEndpoint', 'hooks');
  world.start();
  await eventually(async () => expect(await world.webhooks.endpoint(world.org, second)).toBeNull());
});
