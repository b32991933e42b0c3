import { beforeEach, expect, test } from '@jest/globals';
import { controllerSuite } from '../../test/support/controller-suite.ts';
import { eventually } from '../../test/support/eventually.ts';
import { expectShortTurns } from '../../test/support/short-work.ts';

const suite = controllerSuite();
const options = { manager: 'test', force: true };
const count = 1000;
const id = `dst_${'a'.repeat(26)}`;

beforeEach(async () => {
  suite.start();
  await suite.store.apply({ kind: 'Organization', metadata: { name: 'acme' }, spec: { namespace: 'acme' } }, options);
  await eventually(() => suite.store.get('Namespace', { name: 'acme' }));
});

async function put(name: string, annotations?: Record<string, string>): Promise<void> {
  const metadata = { name, namespace: 'acme', ...(annotations !== undefined && { annotations }) };
  await suite.store.apply({ kind: 'Destination', metadata, spec: { http: { url: 'https://shop.example/hook' } } }, options);
}

async function reasonOf(name: string): Promise<string | undefined> {
  const { metadata, status } = await suite.store.get('Destination', { namespace: 'acme', name });
  if (status?.observedGeneration !== metadata.generation) return undefined;
  return status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
}

/** Which of the objects has the id. */
async function holders(): Promise<string[]> {
  const { items } = await suite.store.list('Destination', { namespace: 'acme', limit: count });
  return items
    .filter(({ status }) => status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'))
    .map(({ metadata }) => metadata.name);
}

test('an id that a thousand objects ask for is one’s, the next one’s when that gives it up or goes, and takes no long turn of the event loop', async () => {
  const claim = { 'posthorn.dev/id': id };
  // Between two of them the event loop serves the controllers, as it does where each is a request.
  for (let i = 0; i < count; i++) {
    await put(`d${i}`, claim);
    if (i % 10 === 0) await new Promise((resolve) => void setImmediate(resolve));
  }
  const [first = ''] = await eventually(async () => {
    for (let i = 0; i < count; i++) expect(await reasonOf(`d${i}`)).toMatch(/^(Ready|IdTaken)$/);
    const found = await holders();
    expect(found).toHaveLength(1);
    return found;
  });

  let claims = true;
  await expectShortTurns(100, async () => {
    claims = !claims;
    await put(first, claims ? claim : {});
    await eventually(async () => expect((await holders()).length).toBe(claims ? 1 : 2));
  });
  await put(first, claim);
  await eventually(async () => expect(await holders()).toEqual([first]));

  await suite.store.delete('Destination', { namespace: 'acme', name: first });
  const [next = ''] = await eventually(async () => {
    const found = await holders();
    expect(found).toHaveLength(1);
    expect(found).not.toContain(first);
    return found;
  });
  await eventually(async () => expect(await suite.controllers.registry.get('destination', id)).toMatchObject({ slug: next }));
});
