import { beforeEach, expect, test } from '@jest/globals';
import { controllerSuite } from '../../test/support/controller-suite.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { PosthornKind } from '../resources/kinds.ts';

const suite = controllerSuite();
type Apply = Parameters<typeof suite.store.apply>[0];
const options = { manager: 'test', force: true };
const signing = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;

beforeEach(async () => {
  suite.start();
  await suite.store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } }, options);
  await eventually(() => suite.store.get('Namespace', { name: 'acme' }));
  const secret = { namespace: 'acme', name: 'values' };
  const data = { token: Buffer.from('Bearer from-a-secret').toString('base64'), signing: Buffer.from(signing).toString('base64') };
  await suite.store.apply({ kind: 'Secret', metadata: secret, data }, options);
  await suite.store.apply({ kind: 'WebhookApplication', metadata: { namespace: 'acme', name: 'one' }, spec: {} }, options);
});

type Headers = readonly object[];
const url = 'https://shop.example/hook';
const families: [kind: PosthornKind, field: string, spec: (headers: Headers) => object][] = [
  ['Destination', 'spec.http.headers', (headers) => ({ http: { url, headers } })],
  ['HttpCronJob', 'spec.headers', (headers) => ({ schedule: '0 0 * * *', url, headers })],
  [
    'WebhookEndpoint',
    'spec.headers',
    (headers) => ({ applicationRef: { name: 'one' }, url, signingSecretRef: { name: 'values', key: 'signing' }, headers }),
  ],
];

/** The condition about credentials once the object is ready; undefined: there is none. */
async function conditionOn(kind: PosthornKind, spec: object) {
  const { metadata } = await suite.store.apply({ kind, metadata: { namespace: 'acme', name: 'one' }, spec } as Apply, options);
  return await eventually(async () => {
    const { status } = await suite.store.get(kind, { namespace: 'acme', name: 'one' });
    const conditions = status?.conditions ?? [];
    expect(status?.observedGeneration).toBe(metadata.generation);
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
    return conditions.find(({ type }) => type === 'CredentialInClear');
  });
}

const valueSecretRef = { name: 'values', key: 'token' };

test.each(families)(
  'a credential in clear in the headers of a %s is in force, and a condition names its field',
  async (kind, field, spec) => {
    const condition = await conditionOn(
      kind,
      spec([
        { name: 'X-Team', value: 'shop' },
        { name: 'Authorization', value: 'Bearer in-clear' },
        { name: 'x-api-key', value: 'also-in-clear' },
        { name: 'X-Auth-Token', valueSecretRef },
      ]),
    );
    expect(condition).toMatchObject({
      status: 'True',
      reason: 'LiteralValue',
      message: expect.stringContaining(` ${field}[Authorization].value, ${field}[x-api-key].value: `),
    });
    expect(condition?.message).toContain('valueSecretRef');
    expect(condition?.message).not.toContain('in-clear');
    await eventually(() =>
      expect(
        suite.controllers.events.filter(({ object }) => object.kind === kind).map(({ type, reason }) => [type, reason]),
      ).toContainEqual(['Warning', 'CredentialInClear']),
    );
    expect(await conditionOn(kind, spec([{ name: 'Authorization', valueSecretRef }]))).toBeUndefined();
  },
);

test.each(families)('headers of a %s that are no credentials need no Secret', async (kind, _, spec) => {
  const headers = [
    { name: 'Idempotency-Key', value: '1' },
    { name: 'X-Team', value: 'shop' },
    { name: 'Cookie', value: '' },
  ];
  expect(await conditionOn(kind, spec(headers))).toBeUndefined();
});

test('a header of a NotificationChannel has its value from a Secret alone', async () => {
  const spec = { type: 'webhook', webhook: { url, headers: [{ name: 'Authorization', value: 'Bearer in-clear' }] } };
  const object = { kind: 'NotificationChannel', metadata: { namespace: 'acme', name: 'one' }, spec } as unknown as Apply;
  await expect(suite.store.apply(object, options)).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
});
