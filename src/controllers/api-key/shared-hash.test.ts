import { beforeEach, describe, expect, test } from '@jest/globals';
import { controllerSuite } from '../../../test/support/controller-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';

const suite = controllerSuite();
const sha256 = 'a'.repeat(64);
const another = 'b'.repeat(64);

beforeEach(async () => {
  suite.start();
  await suite.store.apply(
    { kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } },
    { manager: 'test', force: true },
  );
  await eventually(async () =>
    expect((await suite.store.get('Organization', { name: 'acme' })).status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Ready', status: 'True' }),
    ),
  );
});

async function put(name: string, spec: object = {}, annotations: Record<string, string> = {}): Promise<void> {
  await suite.store.apply(
    { kind: 'ApiKey', metadata: { namespace: 'acme', name, annotations }, spec: { sha256, role: 'viewer', ...spec } },
    { manager: 'test', force: true },
  );
}

const nameOfHolder = async (hash = sha256): Promise<string | undefined> => {
  const id = await suite.redis.client.hget(`${suite.prefix}{cfg}:ix:api-key`, hash);
  return id === null ? undefined : (await suite.controllers.registry.get('apiKey', id))?.name;
};

/** Waits until each key has come to its condition, and requests with the key are those of the first. */
async function expectHolder(holder: string, others: string[], hash = sha256): Promise<void> {
  await eventually(async () => {
    for (const name of [holder, ...others]) {
      const { metadata, status } = await suite.store.get('ApiKey', { namespace: 'acme', name });
      expect(status?.observedGeneration).toBe(metadata.generation);
      const isHolder = name === holder;
      expect(status?.conditions).toContainEqual(
        isHolder
          ? expect.objectContaining({ type: 'Ready', status: 'True' })
          : expect.objectContaining({
              type: 'Accepted',
              status: 'False',
              reason: 'KeyTaken',
              message: expect.stringContaining(`ApiKey ${holder} `),
            }),
      );
    }
    expect(await nameOfHolder(hash)).toBe(holder);
  });
}

const remove = (name: string): Promise<unknown> => suite.store.delete('ApiKey', { namespace: 'acme', name });

/** Creation times are whole seconds. */
const nextSecond = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1001 - (Date.now() % 1000)));

describe('of several API keys of an organization with one hash', () => {
  test('the oldest has it, whatever the names and the order of changes, and the conditions of the others name it', async () => {
    await put('zeta');
    await nextSecond();
    await put('alpha', { role: 'admin' });
    await put('beta', { role: 'admin' });
    await expectHolder('zeta', ['alpha', 'beta']);
    await put('alpha', { role: 'developer' });
    await expectHolder('zeta', ['alpha', 'beta']);
    // A new leader comes to the same.
    await suite.controllers.stop();
    suite.start();
    await expectHolder('zeta', ['alpha', 'beta']);
  });

  test('made in the same second, that whose name comes first has it', async () => {
    await nextSecond();
    await put('beta');
    await put('alpha');
    const [alpha, beta] = await Promise.all(['alpha', 'beta'].map((name) => suite.store.get('ApiKey', { namespace: 'acme', name })));
    expect(alpha?.metadata.creationTimestamp).toBe(beta?.metadata.creationTimestamp);
    await expectHolder('alpha', ['beta']);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['is deleted', () => remove('alpha')],
    ['has another hash', () => put('alpha', { sha256: another })],
  ])('the next one has it once the oldest %s', async (_, change) => {
    for (const name of ['alpha', 'beta', 'gamma']) await put(name);
    await expectHolder('alpha', ['beta', 'gamma']);
    await change();
    await expectHolder('beta', ['gamma']);
    await remove('beta');
    await expectHolder('gamma', []);
  });

  test('the oldest takes it when it comes to the hash by a change, and leaves it to the other again', async () => {
    await put('alpha', { sha256: another });
    await put('beta');
    await expectHolder('beta', []);
    await put('alpha');
    await expectHolder('alpha', ['beta']);
    await put('alpha', { sha256: another });
    await expectHolder('beta', []);
    await expectHolder('alpha', [], another);
  });

  test('one that may not have its own id does not keep it from the others', async () => {
    await put('alpha', {}, { 'posthorn.dev/id': 'dst_of-another-kind' });
    await put('beta');
    await expectHolder('beta', []);
  });

  test('the oldest is found by it when the index leads requests to another, or to none', async () => {
    await put('alpha');
    await expectHolder('alpha', []);
    await suite.controllers.stop();
    const index = `${suite.prefix}{cfg}:ix:api-key`;
    for (const stale of ['key_of-another', '']) {
      if (stale === '') await suite.redis.client.hdel(index, sha256);
      else await suite.redis.client.hset(index, sha256, stale);
      suite.start();
      await expectHolder('alpha', []);
      await suite.controllers.stop();
    }
    suite.start();
  });
});
