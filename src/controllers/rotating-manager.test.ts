import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from '@jest/globals';
import { controllerSuite } from '../../test/support/controller-suite.ts';
import { readyAs } from '../../test/support/disabled-cases.ts';
import { eventually } from '../../test/support/eventually.ts';
import { ownEventData } from '../../test/support/own-events.ts';
import { withMethod } from '../../test/support/with-method.ts';
import type { CompleteStore } from '../store/store.ts';

const suite = controllerSuite();
const url = 'https://shop.example/';
const referring = {
  Source: (name: string) => ({ signingSecretRef: { name, key: 'secret' } }),
  Destination: (name: string) => ({ http: { url, signingSecretRef: { name, key: 'secret' } } }),
};
type Kind = keyof typeof referring;
const kinds: Kind[] = ['Source', 'Destination'];

async function start(own: { store?: CompleteStore } = {}): Promise<void> {
  suite.start(own);
  await suite.store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } }, { manager: 'git' });
  await readyAs(suite.store, 'Organization', { name: 'acme' }, 'Ready');
  await suite.store.apply(
    { kind: 'Source', metadata: { namespace: 'acme', name: 'own' }, spec: { provider: 'posthorn' } },
    { manager: 'git' },
  );
  await readyAs(suite.store, 'Source', { namespace: 'acme', name: 'own' }, 'Ready');
}

const secret = (name: string, byte: number, manager: string, more: object = {}) => {
  const value = Buffer.from(`whsec_${Buffer.alloc(32, byte).toString('base64')}`).toString('base64');
  const object = { kind: 'Secret' as const, metadata: { namespace: 'acme', name, ...more }, data: { secret: value } };
  return suite.store.apply(object, { manager, force: true });
};
const refer = (kind: Kind, name: string, manager: string) =>
  suite.store.apply({ kind, metadata: { namespace: 'acme', name: 'signed' }, spec: referring[kind](name) }, { manager, force: true });

/** An object that Git made, signed with a Secret that Git made. */
async function signed(kind: Kind): Promise<void> {
  await secret('first', 1, 'git');
  await refer(kind, 'first', 'git');
  await readyAs(suite.store, kind, { namespace: 'acme', name: 'signed' }, 'Ready');
  await sleep(1100); // times of managers are in seconds
}
const told = () =>
  eventually(async () => {
    const [data, ...more] = await ownEventData(suite.redis.client, suite.prefix);
    expect([data === undefined, more]).toEqual([false, []]);
    return data;
  });

describe('who rotated', () => {
  beforeEach(() => start());

  test.each(kinds)('the secret of a %s is the manager of the value in the Secret', async (kind) => {
    await signed(kind);
    await secret('first', 2, 'kubectl-edit');
    expect(await told()).toMatchObject({ kind: kind.toLowerCase(), by: 'kubectl-edit' });
  });

  test.each(kinds)('the secret of a %s is the manager of the reference when that leads to another Secret', async (kind) => {
    await secret('second', 2, 'vault');
    await signed(kind);
    await refer(kind, 'second', 'posthorn-api');
    expect(await told()).toMatchObject({ kind: kind.toLowerCase(), by: 'posthorn-api' });
  });

  test('the secret is no manager of something else in the objects', async () => {
    await signed('Source');
    await secret('first', 2, 'kubectl-edit');
    await suite.store.apply(
      { kind: 'Secret', metadata: { namespace: 'acme', name: 'first', labels: { a: 'b' } } },
      { manager: 'labeller' },
    );
    expect(await told()).toMatchObject({ by: 'kubectl-edit' });
  });
});

test.each<[string, () => Promise<never>]>([
  ['fails', () => Promise.reject(new Error('away'))],
  ['has no end', () => new Promise(() => {})],
])('a rotation is reported without who made it when the read of that %s', async (_, getMetadata) => {
  await start({ store: withMethod(suite.store, 'getMetadata', getMetadata) });
  await signed('Destination');
  await secret('first', 2, 'kubectl-edit');
  expect(await told()).toEqual({
    kind: 'destination',
    destinationId: expect.any(String),
    rotatedAt: expect.any(String),
    previousSecretExpiresAt: null,
  });
});
