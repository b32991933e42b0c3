import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** For which object and origin the API makes Secrets, with any store behind it. */
export function describeSecretUse(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const inAcme = (name: string) => ({ namespace: 'acme', name });
  const signingSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const auth = { authType: 'bearer', authConfig: { token: 'canary-token-abcd' } };
  const made = (body: object = {}) => world.create('destinations', { url: 'https://shop.example/a', ...auth, signingSecret, ...body });
  const specOf = async (slug: string) => (await world.store.get('Destination', inAcme(slug))).spec;
  const httpOf = async (slug: string) => (await specOf(slug)).http;
  const tokenRef = async (slug: string) => (await httpOf(slug))?.auth?.tokenSecretRef;
  const patch = (id: string, body: object, key?: string) =>
    world.request('PATCH', `/api/destinations/${id}`, { body, ...(key && { key }) });
  const resolvedRefs = async (slug: string) => {
    const { metadata, status } = await world.store.get('Destination', inAcme(slug));
    const found = status?.conditions?.find(({ type }) => type === 'ResolvedRefs');
    expect(found?.observedGeneration).toBe(metadata.generation);
    return found;
  };
  const annotationsOf = async (slug: string) =>
    (await world.store.getSecret(inAcme((await tokenRef(slug))?.name ?? ''))).metadata.annotations;

  test('a Secret of the API names its object and the origin of its URL', async () => {
    const { slug } = await made();
    const { uid } = (await world.store.get('Destination', inAcme(slug))).metadata;
    expect(await annotationsOf(slug)).toMatchObject({
      'posthorn.dev/made-for': `Destination/${slug}/${uid}`,
      'posthorn.dev/origin': 'https://shop.example',
    });
  });

  test('a URL of another origin that the API takes brings the credentials along, in a new Secret for it', async () => {
    const { id, slug } = await made();
    const before = await tokenRef(slug);
    const { status, headers, body } = await patch(id, { url: 'https://other.example/b' });
    expect([status, headers.get('warning')]).toEqual([200, null]);
    expect(body).toMatchObject({ authConfig: { token: '••••abcd' }, signingSecret: `••••${signingSecret.slice(-4)}` });
    expect(await annotationsOf(slug)).toMatchObject({ 'posthorn.dev/origin': 'https://other.example' });
    expect(await resolvedRefs(slug)).toMatchObject({ status: 'True' });
    await expect(world.store.getSecret(inAcme(before?.name ?? ''))).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    const revealed = await world.request('GET', `/api/destinations/export?includeSensitive=true&ids=${id}`);
    expect(revealed.body.destinations).toMatchObject([{ authConfig: auth.authConfig, signingSecret }]);
  });

  test('a URL of the same origin keeps the Secret', async () => {
    const { id, slug } = await made();
    const before = await tokenRef(slug);
    expect((await patch(id, { url: 'https://shop.example/elsewhere' })).status).toBe(200);
    expect(await tokenRef(slug)).toEqual(before);
  });

  describe('who may write Destinations but not read Secrets', () => {
    const withKubectl = async (slug: string, spec: object) => {
      await world.store.apply({ kind: 'Destination', metadata: inAcme(slug), spec }, { manager: 'kubectl', force: true });
    };

    test('who may write Destinations but not read Secrets gets no credential of the API sent to another origin', async () => {
      const { id, slug } = await made();
      await withKubectl(slug, { http: { ...(await httpOf(slug)), url: 'https://evil.example/' } });
      await eventually(async () =>
        expect(await resolvedRefs(slug)).toMatchObject({
          status: 'False',
          reason: 'SecretNotShared',
          message: expect.stringContaining('evil.example'),
        }),
      );
      // Nor by an API that would take it for the credential of that origin.
      expect((await world.request('GET', `/api/destinations/export?includeSensitive=true&ids=${id}`)).text).not.toContain('canary');
    });

    test('who may write Destinations but not read Secrets gets none of another object sent, and none shown', async () => {
      const { slug } = await made();
      const tokenSecretRef = await tokenRef(slug);
      const http = { url: 'https://shop.example/a', auth: { type: 'bearer', tokenSecretRef } };
      const thief = `thief-of-${slug}`;
      await withKubectl(thief, { http });
      await eventually(async () => expect(await resolvedRefs(thief)).toMatchObject({ status: 'False', reason: 'SecretNotShared' }));
      const { body } = await world.request('GET', `/api/destinations/${thief}`);
      expect(body.authConfig).toEqual({ token: '••••' });
      const moved = await patch(thief, { url: 'https://evil.example/' });
      expect([200, 409]).toContain(moved.status);
      expect((await world.request('GET', `/api/destinations/export?includeSensitive=true&ids=${body.id}`)).text).not.toContain('canary');
    });
  });
}
