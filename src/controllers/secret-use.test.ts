import { describe, expect, test } from '@jest/globals';
import { controllerSuite } from '../../test/support/controller-suite.ts';
import { testKeyring } from '../../test/support/controllers.ts';
import { eventually } from '../../test/support/eventually.ts';
import { idAnnotation, resourceId } from '../core/ids.ts';
import { secretSealingContext } from '../core/sealing-contexts.ts';
import { apiVersion } from '../resources/definition.ts';
import { kinds, type PosthornKind } from '../resources/kinds.ts';
import { madeForIn, madeForMetadata, usableLabel } from '../resources/secret-use.ts';
import type { ApplyObject } from '../store/store.ts';

type Referring = 'Source' | 'Destination' | 'NotificationChannel' | 'WebhookEndpoint';

const signing = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const inAcme = (name: string) => ({ name, namespace: 'acme' });
const from = (key: string) => ({ name: 'stored', key });

/** An object of each kind that uses the key of the Secret `stored`. */
const users: Record<Referring, { key: string; spec: object }> = {
  Source: { key: 'signingSecret-aaaaaaaa', spec: { provider: 'generic', signingSecretRef: from('signingSecret-aaaaaaaa') } },
  Destination: {
    key: 'token-aaaaaaaa',
    spec: { http: { url: 'https://shop.example/a', auth: { type: 'bearer', tokenSecretRef: from('token-aaaaaaaa') } } },
  },
  NotificationChannel: {
    key: 'header-aaaaaaaa',
    spec: {
      type: 'webhook',
      webhook: { url: 'https://shop.example/a', headers: [{ name: 'x-key', valueSecretRef: from('header-aaaaaaaa') }] },
    },
  },
  WebhookEndpoint: {
    key: 'signingSecret-aaaaaaaa',
    spec: { applicationRef: { name: 'app' }, url: 'https://shop.example/a', signingSecretRef: from('signingSecret-aaaaaaaa') },
  },
};
const kindsOfUsers = Object.keys(users) as Referring[];
const withUrl = kindsOfUsers.filter((kind) => kind !== 'Source');

const suite = controllerSuite();

async function start(requiresSecretConsent = false): Promise<void> {
  suite.start({ requiresSecretConsent });
  await apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } });
  await eventually(() => suite.store.get('Namespace', { name: 'acme' }));
  await apply({ kind: 'WebhookApplication', metadata: inAcme('app'), spec: {} });
}

const apply = <K extends PosthornKind | 'Secret'>(object: ApplyObject<K>) => suite.store.apply(object, { manager: 'test', force: true });
const use = (kind: Referring, name = 'shop', spec = users[kind].spec) => apply({ kind, metadata: inAcme(name), spec });
const elsewhere = (kind: Referring): object => JSON.parse(JSON.stringify(users[kind].spec).replace('shop.example', 'evil.example'));

/** The Secret `stored`, with this `metadata`. */
const secret = (key: string, metadata: Partial<ApplyObject['metadata']> = {}) =>
  apply({ kind: 'Secret', metadata: { ...inAcme('stored'), ...metadata }, data: { [key]: Buffer.from(signing).toString('base64') } });

async function expectResolved(kind: Referring, name: string, expected: object): Promise<void> {
  await eventually(async () => {
    const { metadata, status } = await suite.store.get(kind, inAcme(name));
    const found = status?.conditions?.find(({ type }) => type === 'ResolvedRefs');
    expect(found).toMatchObject({ ...expected, observedGeneration: metadata.generation });
  });
}
const resolved = { status: 'True', reason: 'ResolvedRefs' };
const notReadable = { status: 'False', reason: 'SecretNotReadable' };
const notShared = (message: string) => ({ status: 'False', reason: 'SecretNotShared', message: expect.stringContaining(message) });

describe.each(kindsOfUsers)('a Secret that the API made for a %s', (kind) => {
  const { key } = users[kind];

  test('serves that object, and none that another kind or name has', async () => {
    await start();
    await secret(key, madeForMetadata(await use(kind)));
    await expectResolved(kind, 'shop', resolved);
    await use(kind, 'other');
    await expectResolved(kind, 'other', notShared('made by the API for another object: send the credential to the API'));
  });

  test('serves no other object when its annotations are removed or changed: what is sealed in it does not open then', async () => {
    await start();
    const [first, other] = [await use(kind), await use(kind, 'other')];
    const made = madeForMetadata(first);
    const organization = resourceId(kinds.Organization.idPrefix, (await suite.store.get('Organization', { name: 'acme' })).metadata);
    const sealed = testKeyring.seal(signing, secretSealingContext(organization, 'stored', key, madeForIn(made)));
    const put = (metadata: Partial<ApplyObject['metadata']>) =>
      apply({ kind: 'Secret', metadata: { ...inAcme('stored'), ...metadata }, data: { [key]: Buffer.from(sealed).toString('base64') } });
    await put(made);
    await expectResolved(kind, 'shop', resolved);
    await put({});
    await expectResolved(kind, 'other', notReadable);
    await put(madeForMetadata(other));
    await expectResolved(kind, 'other', notReadable);
  });

  test('does not serve an object of its name that was made later', async () => {
    await start();
    const first = await use(kind);
    const { annotations } = madeForMetadata(first);
    await suite.store.delete(kind, inAcme('shop'));
    await use(kind);
    // Its owner reference was removed, so that it outlives the first one.
    await secret(key, { annotations });
    await expectResolved(kind, 'shop', notShared('another object'));
  });

  test('that has lost its annotation serves its owner alone', async () => {
    await start();
    const { labels, ownerReferences } = madeForMetadata(await use(kind));
    await secret(key, { labels, ownerReferences });
    await expectResolved(kind, 'shop', resolved);
    await use(kind, 'other');
    await expectResolved(kind, 'other', notShared('another object'));
  });
});

describe.each(withUrl)('a Secret that the API made for the URL of a %s', (kind) => {
  test('does not go along when others change the URL, and what was in force stays', async () => {
    await start();
    const object = await use(kind);
    await secret(users[kind].key, madeForMetadata(object));
    await expectResolved(kind, 'shop', resolved);
    await use(kind, 'shop', elsewhere(kind));
    await expectResolved(kind, 'shop', notShared('for https://shop.example, and the object now names https://evil.example'));
    const { conditions = [] } = (await suite.store.get(kind, inAcme('shop'))).status ?? {};
    expect(conditions.find(({ type }) => type === 'Programmed')).toMatchObject({ reason: 'EarlierInForce' });
    await use(kind);
    await expectResolved(kind, 'shop', resolved);
  });
});

test.each<Referring>(['Destination', 'NotificationChannel'])(
  'a Secret of the API that has lost its annotation serves its %s only at the URL that is in force',
  async (kind) => {
    await start();
    const { labels, ownerReferences } = madeForMetadata(await use(kind));
    await secret(users[kind].key, { labels, ownerReferences });
    await expectResolved(kind, 'shop', resolved);
    await use(kind, 'shop', elsewhere(kind));
    await expectResolved(kind, 'shop', notShared('now names https://evil.example'));
  },
);

test.each<Referring>(['Destination', 'NotificationChannel'])(
  'a Secret of the API that has lost its annotation does not go to another URL when its %s requests another id at the same time',
  async (kind) => {
    await start();
    const { labels, ownerReferences } = madeForMetadata(await use(kind));
    await secret(users[kind].key, { labels, ownerReferences });
    await expectResolved(kind, 'shop', resolved);
    const id = `${kind === 'Destination' ? 'dst' : 'nch'}_${'a'.repeat(26)}`;
    await apply({ kind, metadata: { ...inAcme('shop'), annotations: { [idAnnotation]: id } }, spec: elsewhere(kind) });
    await expectResolved(kind, 'shop', notShared('now names https://evil.example'));
  },
);

describe.each(kindsOfUsers)('the token of a ServiceAccount', (kind) => {
  test(`the token of a ServiceAccount is not used by a ${kind}, whatever its maker and its labels`, async () => {
    await start();
    await use(kind);
    await apply({
      kind: 'Secret',
      type: 'kubernetes.io/service-account-token',
      metadata: {
        ...inAcme('stored'),
        labels: { [usableLabel]: 'true' },
        annotations: { 'kubernetes.io/service-account.name': 'default' },
      },
      data: { [users[kind].key]: Buffer.from(signing).toString('base64') },
    });
    await expectResolved(kind, 'shop', notShared('holds the token of a ServiceAccount'));
  });
});

test('what the API made for one field is not sent as another one to the same origin', async () => {
  await start();
  const object = await use('Destination');
  await secret('signingSecret-aaaaaaaa', madeForMetadata(object));
  await use('Destination', 'shop', {
    http: { url: 'https://shop.example/a', auth: { type: 'bearer', tokenSecretRef: from('signingSecret-aaaaaaaa') } },
  });
  await expectResolved('Destination', 'shop', notShared('for another field'));
});

describe.each(kindsOfUsers)('where Secrets must consent, one that a %s refers to', (kind) => {
  const { key } = users[kind];

  test('needs the label, and gets into force with it', async () => {
    await start(true);
    await use(kind);
    await secret(key);
    await expectResolved(kind, 'shop', notShared(`label ${usableLabel}: "true"`));
    await secret(key, { labels: { [usableLabel]: 'no' } });
    await expectResolved(kind, 'shop', notShared('which this installation requires'));
    await secret(key, { labels: { [usableLabel]: 'true' } });
    await expectResolved(kind, 'shop', resolved);
  });

  test('needs no label when the API made it for that object, and none helps another', async () => {
    await start(true);
    const made = madeForMetadata(await use(kind));
    await secret(key, { ...made, labels: { ...made.labels, [usableLabel]: 'true' } });
    await expectResolved(kind, 'shop', resolved);
    await use(kind, 'other');
    await expectResolved(kind, 'other', notShared('another object'));
  });
});

test('a Secret of a user that others own too is no Secret of the API', async () => {
  await start();
  const { kind, metadata } = await use('Destination');
  const ownerReferences = [{ apiVersion, kind, name: metadata.name, uid: metadata.uid }];
  await secret('token-aaaaaaaa', { ownerReferences });
  await use('Destination', 'other');
  await expectResolved('Destination', 'other', resolved);
});
