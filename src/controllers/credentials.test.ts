import { beforeEach, expect, test } from '@jest/globals';
import { controllerSuite } from '../../test/support/controller-suite.ts';
import { testKeyring } from '../../test/support/controllers.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { CredentialsRecord } from '../core/records.ts';
import { recordSealingContext } from '../core/sealing-contexts.ts';
import { madeForMetadata } from '../resources/secret-use.ts';
import type { ApplyObject } from '../store/store.ts';
import { idOf } from './held-ids.ts';

const inAcme = (name: string) => ({ name, namespace: 'acme' });
const signing = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

const suite = controllerSuite();

beforeEach(async () => {
  suite.start();
  await apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } });
  await eventually(() => suite.store.get('Namespace', { name: 'acme' }));
});
const apply = <K extends 'Organization' | 'Destination' | 'Source' | 'Secret'>(object: ApplyObject<K>) =>
  suite.store.apply(object, { manager: 'test', force: true });
const secret = (data: Record<string, string>, metadata: Partial<ApplyObject['metadata']> = {}) =>
  apply({
    kind: 'Secret',
    metadata: { ...inAcme('own'), ...metadata },
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
  });
const destination = (http: object) =>
  apply({ kind: 'Destination', metadata: inAcme('shop'), spec: { http: { url: 'https://shop.example/', ...http } } });
const bearer = (key: string) => ({ auth: { type: 'bearer', tokenSecretRef: { name: 'own', key } } });

/** What is published for the object, opened, once it is of the generation. */
async function published(id: string, generation = 1): Promise<{ secret: string; key: string; value: string; isMadeByApi: boolean }[]> {
  return eventually(async () => {
    const record = await suite.controllers.registry.get('credentials', id);
    if (record === null || record.generation !== generation) throw new Error(`nothing is published for generation ${generation}`);
    const context = recordSealingContext(record.org, 'credentials', id, 'value');
    return record.values.map(({ sealed, ...rest }) => ({ ...rest, value: testKeyring.open(sealed, context) }));
  });
}
const recordOf = (id: string): Promise<CredentialsRecord | null> => suite.controllers.registry.get('credentials', id);

test('the values that an object may use are published sealed, with whether the API made them, and go with the object', async () => {
  await secret({ token: 'canary-token', signing });
  const object = await destination({ ...bearer('token'), signingSecretRef: { name: 'own', key: 'signing' } });
  const id = idOf('Destination', object);
  expect(await published(id)).toEqual([
    { secret: 'own', key: 'token', value: 'canary-token', isMadeByApi: false },
    { secret: 'own', key: 'signing', value: signing, isMadeByApi: false },
  ]);
  expect(JSON.stringify(await recordOf(id))).not.toContain('canary');
  const made = { name: 'made', ...madeForMetadata(object) };
  await secret({ 'token-aaaaaaaa': 'canary-made' }, made);
  await destination({ auth: { type: 'bearer', tokenSecretRef: { name: 'made', key: 'token-aaaaaaaa' } } });
  expect(await published(id, 2)).toEqual([{ secret: 'made', key: 'token-aaaaaaaa', value: 'canary-made', isMadeByApi: true }]);
  await suite.store.delete('Destination', inAcme('shop'));
  await eventually(async () => expect(await recordOf(id)).toBeNull());
});

test('what an object refers to that cannot be put in force is published all the same', async () => {
  await secret({ token: 'canary-token', signing: 'no signing secret' });
  const object = await destination({ ...bearer('token'), signingSecretRef: { name: 'own', key: 'signing' } });
  const values = (await published(idOf('Destination', object))).map(({ value }) => value);
  expect(values).toEqual(['canary-token', 'no signing secret']);
  expect(await suite.controllers.registry.get('destination', idOf('Destination', object))).toBeNull();
});

test('both secrets of a rotating source are published', async () => {
  await secret({ now: 'first-secret', before: 'second-secret' });
  const from = (key: string) => ({ name: 'own', key });
  const rotation = { previousSecretRef: from('before'), validUntil: '2090-01-01T00:00:00Z' };
  const source = await apply({ kind: 'Source', metadata: inAcme('in'), spec: { signingSecretRef: from('now'), rotation } });
  expect((await published(idOf('Source', source))).map(({ value }) => value)).toEqual(['first-secret', 'second-secret']);
});

test('what is missing, or not for the object to use, is left out', async () => {
  await suite.controllers.stop();
  suite.start({ requiresSecretConsent: true });
  await secret({ token: 'canary-token' });
  const id = idOf('Destination', await destination(bearer('token')));
  expect(await published(id)).toEqual([]);
  await secret({ token: 'canary-token' }, { labels: { 'posthorn.dev/usable': 'true' } });
  await eventually(async () => expect((await published(id)).map(({ value }) => value)).toEqual(['canary-token']));
  await destination(bearer('other'));
  expect(await published(id, 2)).toEqual([]);
});

test('an object that refers to no Secret any more has nothing published', async () => {
  await secret({ token: 'canary-token' });
  const id = idOf('Destination', await destination(bearer('token')));
  await published(id);
  await destination({});
  await eventually(async () => expect(await recordOf(id)).toBeNull());
});

test('an equal value keeps its envelope, and what went while nobody watched is swept', async () => {
  await secret({ token: 'canary-token' });
  const id = idOf('Destination', await destination(bearer('token')));
  await published(id);
  const before = await recordOf(id);
  await suite.controllers.stop();
  suite.start();
  await eventually(async () => expect(suite.controllers.caches.Destination.size).toBe(1));
  await destination({ ...bearer('token'), timeoutMs: 5000 });
  await published(id, 2);
  expect((await recordOf(id))?.values).toEqual(before?.values);
  await suite.controllers.stop();
  await suite.store.delete('Destination', inAcme('shop'));
  suite.start();
  await eventually(async () => expect(await recordOf(id)).toBeNull());
});
