import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type CertificateAuthority, createCertificateAuthority } from '../../support/certificate-authority.ts';
import { encryptedKey, rsaKeyOfBits } from '../../support/costly-keys.ts';
import { eventually } from '../../support/eventually.ts';
import { expectShortTurns } from '../../support/short-work.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** A private certificate authority and mutual TLS of destinations, with any store behind the API. */
export function describeDestinationTls(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  let authority: CertificateAuthority;
  let organizations = 0;
  beforeAll(async () => {
    authority = createCertificateAuthority();
    world = await start();
  });
  afterAll(async () => {
    authority.remove();
    await world.stop();
  });

  const url = 'https://hooks.example.com/in';
  const redacted = '***REDACTED***';
  const sensitive = '?includeSensitive=true';
  function issued(): { clientCertificate: string; clientKey: string } {
    const { cert, key } = authority.issue(['sender.example']);
    return { clientCertificate: cert.toString(), clientKey: key.toString() };
  }
  async function organization(): Promise<string> {
    const slug = `tls-${++organizations}`;
    await world.addOrganization(slug);
    return world.addKey(slug);
  }
  const create = (tls: object | null, key?: string) => world.create('destinations', { name: 'Mutual', url, tls }, key);
  const read = async (slug: string, key?: string) => (await world.request('GET', `/api/destinations/${slug}`, { key })).body;
  const change = (slug: string, body: object, key?: string) => world.request('PATCH', `/api/destinations/${slug}`, { key, body });
  const exportOf = async (key: string, query = '') => {
    const { exportedAt: _, organizationSlug: __, ...rest } = (await world.request('GET', `/api/destinations/export${query}`, { key })).body;
    return rest;
  };
  const importInto = async (key: string, document: object, conflictStrategy = 'skip') =>
    (await world.request('POST', '/api/destinations/import', { key, body: { ...document, conflictStrategy } })).body;
  const masked = { clientCertificate: '••••', clientKey: '••••' };

  test('are shown with certificate and key masked, which stay when they are sent back', async () => {
    const key = await organization();
    const [one, two] = [issued(), issued()];
    const before = await create({ caBundle: authority.text, ...one }, key);
    expect(before.tls).toEqual({ caBundle: authority.text, ...masked });
    const now = async () => (await exportOf(key, sensitive)).destinations[0].tls;
    expect((await change(before.id, { tls: before.tls }, key)).body).toEqual(before);
    expect(await now()).toEqual({ caBundle: authority.text, ...one });
    expect((await change(before.id, { tls: { caBundle: null } }, key)).body.tls).toEqual({ caBundle: null, ...masked });
    expect((await change(before.id, { tls: two }, key)).body.tls).toEqual({ caBundle: null, ...masked });
    expect(await now()).toEqual({ caBundle: null, ...two });
    const half = await change(before.id, { tls: { clientKey: one.clientKey } }, key);
    expect([half.status, half.body.message]).toEqual([400, expect.stringContaining('are not a certificate and its private key')]);
    const alone = await change(before.id, { tls: { clientKey: null } }, key);
    expect([alone.status, alone.body.message]).toEqual([400, expect.stringContaining('belong together')]);
    expect(await now()).toEqual({ caBundle: null, ...two });
    expect((await change(before.id, { tls: { clientCertificate: null, clientKey: null } }, key)).body.tls).toBeNull();
    expect((await change(before.id, { tls: { caBundle: authority.text } }, key)).body.tls).toMatchObject({ clientKey: null });
    expect((await change(before.id, { tls: null }, key)).body.tls).toBeNull();
  });

  test('a key of a client is not led to another host by who is no admin', async () => {
    const own = issued();
    const { id, tls } = await create(own);
    const developer = await world.addKey('acme', { role: 'developer' });
    const elsewhere = { url: 'https://elsewhere.example.com/' };
    for (const body of [elsewhere, { ...elsewhere, tls }]) {
      const answer = await change(id, body, developer);
      expect([answer.status, answer.body.code]).toEqual([400, 'CREDENTIALS_REQUIRED']);
    }
    const insecure = url.replace('https:', 'http:');
    for (const key of [developer, await world.addKey('acme', { role: 'admin' })])
      expect((await change(id, { url: insecure }, key)).body.code).toBe('CREDENTIALS_REQUIRED');
    expect((await change(id, { url: `${url}/too` }, developer)).status).toBe(200);
    expect((await change(id, { ...elsewhere, tls: own }, developer)).status).toBe(200);
    expect((await change(id, { url, tls: null }, developer)).status).toBe(200);
  });

  test.each(['developer', 'admin'] as const)(
    'a token does not go on by http where it went by https, by a key of the role %s',
    async (role) => {
      const key = await world.addKey('acme', { role });
      const authConfig = { token: 'token-of-the-receiver' };
      const { id } = await world.create('destinations', { url, authType: 'bearer', authConfig });
      const insecure = url.replace('https:', 'http:');
      expect((await change(id, { url: insecure }, key)).body.code).toBe('CREDENTIALS_REQUIRED');
      expect((await change(id, { url: insecure, authConfig }, key)).status).toBe(200);
    },
  );

  test.each<[what: string, key: () => string, problem: string]>([
    ['an encrypted key, whose password is hashed very often', () => encryptedKey(0x7fff), 'is an encrypted key'],
    ['an RSA key of 16,384 bits', () => rsaKeyOfBits(16_384), 'is an RSA key of more than 4096 bits'],
  ])('%s is refused at once', async (_, key, problem) => {
    const clientKey = key();
    const body = { name: 'Costly', url, tls: { ...issued(), clientKey } };
    const answers: unknown[] = [];
    await expectShortTurns(100, async () => {
      const answer = await world.request('POST', '/api/destinations', { body });
      answers.push([answer.status, answer.body.message]);
    });
    expect(answers).toContainEqual([400, expect.stringContaining(`tls.clientKey ${problem}`)]);
  });

  describe('an export', () => {
    test('and its import in another organization and the export of that are the same', async () => {
      const [from, to] = [await organization(), await organization()];
      const none = { caBundle: null, clientCertificate: null, clientKey: null };
      const all = [{ caBundle: authority.text }, { caBundle: authority.text, ...issued() }, issued()].map((tls) => ({ ...none, ...tls }));
      for (const tls of all) await create(tls, from);
      const document = await exportOf(from, sensitive);
      expect(document.destinations.map(({ tls }: { tls: object }) => tls)).toEqual(all);
      expect(await importInto(to, document)).toMatchObject({ success: true, summary: { imported: 3 }, warnings: [] });
      expect(await exportOf(to, sensitive)).toEqual(document);
      expect(await exportOf(to)).toEqual(await exportOf(from));
    });

    test('an export holds what Git has declared, certificate and key redacted', async () => {
      const key = await organization();
      const namespace = `tls-${organizations}`;
      const own = issued();
      const data = Object.fromEntries(Object.entries(own).map(([name, pem]) => [name, Buffer.from(pem).toString('base64')]));
      await world.store.apply({ kind: 'Secret', metadata: { name: 'mutual', namespace }, data }, { manager: 'argocd' });
      const ref = (name: string) => ({ name: 'mutual', key: name });
      const refs = { clientCertificateSecretRef: ref('clientCertificate'), clientKeySecretRef: ref('clientKey') };
      const http = { url, useStaticIp: true, tls: { caBundle: authority.text, ...refs } };
      const spec = { description: 'By Git', type: 'http', http };
      await world.store.apply({ kind: 'Destination', metadata: { name: 'git', namespace }, spec }, { manager: 'argocd' });
      const shown = (of: object) => ({ description: 'By Git', useStaticIp: true, tls: { caBundle: authority.text, ...of } });
      expect(await read('git', key)).toMatchObject(shown(masked));
      const left = shown({ clientCertificate: redacted, clientKey: redacted });
      await eventually(async () => expect((await exportOf(key)).destinations).toMatchObject([left]));
      expect((await exportOf(key, sensitive)).destinations).toMatchObject([shown(own)]);
      expect((await change('git', { name: 'Named', tls: { caBundle: authority.text, ...masked } }, key)).status).toBe(200);
    });

    test('an export without credentials makes a disabled destination without certificate and key, which can be sent', async () => {
      const [from, to] = [await organization(), await organization()];
      const own = issued();
      await create({ caBundle: authority.text, ...own }, from);
      const { warnings } = await importInto(to, await exportOf(from));
      expect(warnings).toEqual(['Destination "mutual" is disabled: send its tls, then enable it.']);
      const tls = { caBundle: authority.text, clientCertificate: null, clientKey: null };
      expect(await read('mutual', to)).toMatchObject({ enabled: false, tls });
      expect((await change('mutual', { tls: own, enabled: true }, to)).body).toMatchObject({ enabled: true, tls: masked });
      expect(await exportOf(to, sensitive)).toEqual(await exportOf(from, sensitive));
    });

    test('an export without credentials keeps the stored ones on overwrite, and without a certificate authority it goes', async () => {
      const key = await organization();
      await create({ caBundle: authority.text, ...issued() }, key);
      const before = await exportOf(key, sensitive);
      const { destinations, ...rest } = await exportOf(key);
      const [record] = destinations;
      for (const caBundle of [authority.text, null]) {
        const sent = { ...rest, destinations: [{ ...record, tls: { ...record.tls, caBundle } }] };
        expect(await importInto(key, sent, 'overwrite')).toMatchObject({ success: true, warnings: [] });
        const { tls, ...others } = (await exportOf(key, sensitive)).destinations[0];
        expect({ ...others, tls }).toEqual({ ...before.destinations[0], tls: { ...before.destinations[0].tls, caBundle } });
      }
    });
  });
}
