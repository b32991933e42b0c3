import { beforeEach, describe, expect, test } from '@jest/globals';
import { controllerSuite } from '../../../test/support/controller-suite.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { FakeClock } from '../../../test/support/fake-clock.ts';
import type { Condition } from '../../resources/metadata.ts';

const suite = controllerSuite();
const dayMs = 24 * 60 * 60 * 1000;
const hashOf = (name: string): string => Buffer.from(name).toString('hex').padEnd(64, '0');
const inAcme = (name: string) => ({ namespace: 'acme', name });
const text = (ms: number): string => new Date(ms).toISOString();

let clock: FakeClock;

beforeEach(async () => {
  clock = new FakeClock(Date.UTC(2026, 0, 1));
  suite.start({ clock });
  await suite.store.apply({ kind: 'Namespace', metadata: { name: 'acme' } }, { manager: 'test', force: true });
  await suite.store.apply(
    { kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } },
    { manager: 'test', force: true },
  );
});

async function put(name: string, expiresAt?: string, maker?: string): Promise<void> {
  const spec = {
    sha256: hashOf(name),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(maker !== undefined && { createdBy: { name: maker, sha256: hashOf(maker) } }),
  };
  await suite.store.apply({ kind: 'ApiKey', metadata: inAcme(name), spec }, { manager: 'test', force: true });
}

async function conditions(name: string): Promise<Condition[]> {
  return (await suite.store.get('ApiKey', inAcme(name))).status?.conditions ?? [];
}
async function expectReady(name: string, status: string, reason: string, message = ''): Promise<void> {
  await eventually(async () => {
    await clock.advance(1);
    const { metadata, status: seen } = await suite.store.get('ApiKey', inAcme(name));
    expect(seen?.observedGeneration).toBe(metadata.generation);
    const ready = expect.objectContaining({ type: 'Ready', status, reason, message: expect.stringContaining(message) });
    expect(seen?.conditions).toContainEqual(ready);
  });
}
const typesOf = async (name: string): Promise<string[]> => (await conditions(name)).map(({ type }) => type);
const recordOf = async (name: string) => {
  const id = await suite.redis.client.hget(`${suite.prefix}{cfg}:ix:api-key`, hashOf(name));
  return id === null ? null : await suite.controllers.registry.get('apiKey', id);
};

describe('an API key that expires', () => {
  test.each([1000, dayMs, 30 * dayMs, 2 ** 31 + 5000, 400 * dayMs])(
    'in %d ms is Ready until then, and says Expired after it, by itself',
    async (lifeMs) => {
      const endMs = clock.now() + lifeMs;
      await put('build', text(endMs));
      await expectReady('build', 'True', 'Ready');
      clock.jump(endMs - clock.now() - 500);
      await expectReady('build', 'True', 'Ready');
      clock.jump(500);
      await expectReady('build', 'False', 'Expired', text(endMs));
      expect(await typesOf('build')).toContain('Stalled');
      await eventually(() => expect(suite.controllers.events.filter(({ reason }) => reason === 'Expired')).toHaveLength(1));
      expect(await recordOf('build')).toMatchObject({ expiresAtMs: endMs });
    },
  );

  test('an API key that expires is accepted and programmed after its end, and Ready again with a later end', async () => {
    await put('build', '2020-01-01T00:00:00Z');
    await expectReady('build', 'False', 'Expired', '2020-01-01T00:00:00.000Z');
    expect(await conditions('build')).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: 'Accepted', status: 'True' }),
        expect.objectContaining({ type: 'Programmed', status: 'True' }),
      ]),
    );
    await put('build', '2027-01-01T00:00:00Z');
    await expectReady('build', 'True', 'Ready');
    expect(await typesOf('build')).not.toContain('Stalled');
  });

  test('an API key that expires takes the keys below it along, which are not Stalled: an edit of it helps them', async () => {
    await put('root', '2026-02-01T00:00:00Z');
    await put('middle', undefined, 'root');
    await put('leaf', '2030-01-01T00:00:00Z', 'middle');
    await expectReady('leaf', 'True', 'Ready');
    clock.jump(31 * dayMs);
    for (const name of ['middle', 'leaf']) {
      await expectReady(name, 'False', 'Expired', 'a key that made this one expired at 2026-02-01T00:00:00.000Z');
      expect(await typesOf(name)).not.toContain('Stalled');
    }
    await put('root', '2027-02-01T00:00:00Z');
    for (const name of ['root', 'middle', 'leaf']) await expectReady(name, 'True', 'Ready');
    await suite.store.delete('ApiKey', inAcme('root'));
    for (const name of ['middle', 'leaf']) await expectReady(name, 'False', 'KeyNotFound');
  });
});

test('an API key that expires in the year 9999 is not reconciled again and again', async () => {
  await put('build', '9999-12-31T00:00:00Z');
  await expectReady('build', 'True', 'Ready');
  const count = async (): Promise<number> => {
    const text = await suite.controllers.metrics.metrics();
    const lines = text.split('\n').filter((line) => /_count\{.*ApiKey/.test(line) || /total\{.*ApiKey/.test(line));
    expect(lines).not.toHaveLength(0);
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  };
  // It may be reconciled before its organization, and is once more after the grace period of new objects.
  await clock.advance(60_000);
  const before = await count();
  await clock.advance(60_000);
  // A timer that is too long fires after 1 ms, again and again.
  expect(await count()).toBeLessThan(before + 20);
});
