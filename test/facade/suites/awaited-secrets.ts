import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Answer, FacadeWorld } from '../facade-world.ts';
import { signingSecret } from './portable-destinations.ts';

/** What was imported without its signing secret, with any store behind the API. */
export function describeAwaitedSecrets(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  async function organization(slug: string): Promise<string> {
    await world.addOrganization(slug);
    return await world.addKey(slug);
  }
  const url = 'https://hooks.example.com/in';
  const exportOf = async (key: string) => (await world.request('GET', '/api/destinations/export', { key })).body;
  const importInto = (key: string, body: object) => world.request('POST', '/api/destinations/import', { key, body });
  const read = (key: string, slug: string) => world.request('GET', `/api/destinations/${slug}`, { key });

  test('a destination that was imported without its signing secret is not enabled unsigned, until it has one or nobody wants one', async () => {
    const [from, to] = [await organization('from'), await organization('to')];
    for (const slug of ['given', 'without']) await world.create('destinations', { name: slug, slug, url, signingSecret }, from);
    const document = await exportOf(from);
    const patch = (slug: string, body: object) => world.request('PATCH', `/api/destinations/${slug}`, { key: to, body });
    for (const conflictStrategy of ['skip', 'overwrite']) {
      expect((await importInto(to, { ...document, conflictStrategy })).body).toMatchObject({ success: true });
      for (const slug of ['given', 'without']) {
        expect((await read(to, slug)).body).toMatchObject({ enabled: false, signingSecret: null, awaitsSigningSecret: true });
        for (const sent of [{ enabled: true }, { enabled: true, name: 'Other' }])
          expect(await patch(slug, sent)).toMatchObject({
            status: 400,
            body: { code: 'VALIDATION_FAILED', message: expect.stringMatching(/^signingSecret is missing: the import left it out/) },
          });
      }
    }
    expect((await exportOf(to)).destinations).toMatchObject([{ hasSigningSecret: true }, { hasSigningSecret: true }]);
    const { body: signed } = await patch('given', { enabled: true, signingSecret });
    expect(signed).toMatchObject({ enabled: true, signingSecret: expect.stringContaining('•'), awaitsSigningSecret: false });
    const { body: unsigned } = await patch('without', { enabled: true, awaitsSigningSecret: false });
    expect(unsigned).toMatchObject({ enabled: true, signingSecret: null, awaitsSigningSecret: false });
    expect((await patch('without', { awaitsSigningSecret: true })).status).toBe(400);
  });

  test('a source that was imported without its signing secret is not enabled unverified, until it has one or nobody wants one', async () => {
    const { body: signed } = await world.request('POST', '/api/sources', {
      body: { name: 'Signed', provider: 'github', signingSecret: 'a secret of the provider' },
    });
    const { sources } = (await world.request('GET', `/api/sources/export?ids=${signed.slug}`)).body;
    const patch = (id: string, body: object): Promise<Answer> => world.request('PATCH', `/api/sources/${id}`, { body });
    const slugs = ['given', 'without', 'cleared'].map((name) => `${name}-${signed.slug}`.slice(0, 50));
    const body = { sources: slugs.map((slug) => ({ ...sources[0], slug })), conflictStrategy: 'overwrite' };
    for (let times = 0; times < 2; times++) {
      expect((await world.request('POST', '/api/sources/import', { body })).body.warnings).toHaveLength(slugs.length);
      for (const slug of slugs) {
        expect(await patch(slug, { enabled: true })).toMatchObject({
          status: 400,
          body: { code: 'VALIDATION_FAILED', message: expect.stringMatching(/^signingSecret is missing: the import left it out/) },
        });
        const { body: record } = await patch(slug, { description: 'still waits' });
        expect(record).toMatchObject({ enabled: false, hasSigningSecret: false, awaitsSigningSecret: true });
      }
    }
    const [given = '', without = '', cleared = ''] = slugs;
    const enabled = { enabled: true, awaitsSigningSecret: false };
    expect((await patch(given, { enabled: true, signingSecret: 'another secret' })).body).toMatchObject({
      ...enabled,
      hasSigningSecret: true,
      rejectInvalidSignatures: true,
    });
    expect((await patch(without, enabled)).body).toMatchObject({ ...enabled, hasSigningSecret: false });
    expect((await patch(cleared, { enabled: true, signingSecret: null })).body).toMatchObject({ ...enabled, hasSigningSecret: false });
  });
}
