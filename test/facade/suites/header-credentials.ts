import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';

type Headers = Record<string, string>;

/** How headers are sent and shown by one kind. */
interface HeaderKind {
  name: string;
  path: string;
  body: object;
  sent(headers: Headers): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: the shape is that of the kind
  shown(body: any): Headers;
  // biome-ignore lint/suspicious/noExplicitAny: the shape is that of the kind
  idOf(body: any): string;
}

interface Pair {
  name: string;
  value: string;
}

const headerKinds: readonly HeaderKind[] = [
  {
    name: 'destination',
    path: '/api/destinations',
    body: { name: 'Shop', url: 'https://shop.example/in' },
    sent: (headers) => headers,
    shown: (body) => body.headers,
    idOf: ({ id }) => id,
  },
  {
    name: 'cron job',
    path: '/api/cron',
    body: { name: 'Report', cronExpression: '0 6 * * *', url: 'https://shop.example/in' },
    sent: (headers) => headers,
    shown: ({ cronJob }) => JSON.parse(cronJob.headers),
    idOf: ({ cronJob }) => cronJob.id,
  },
  {
    name: 'webhook endpoint',
    path: '/api/webhook-endpoints',
    body: { url: 'https://shop.example/in' },
    sent: (headers) => Object.entries(headers).map(([name, value]) => ({ name, value })),
    shown: ({ data }) => Object.fromEntries(data.headers.map(({ name, value }: Pair) => [name, value])),
    idOf: ({ data }) => data.id,
  },
];

/** Credentials among the headers that configuration adds to requests, with any store behind the API. */
export function describeHeaderCredentials(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  let applicationId: string;
  let viewer: string;
  let developer: string;
  beforeAll(async () => {
    world = await start();
    applicationId = (await world.request('POST', '/api/webhook-applications', { body: { name: 'Customer' } })).body.data.id;
    viewer = await world.addKey('acme', { role: 'viewer' });
    developer = await world.addKey('acme', { role: 'developer' });
  });
  afterAll(() => world.stop());

  const headers = { 'X-Shop': 'north', Authorization: 'Bearer canary-abcd', 'X-Api-Key': 'canary-key-wxyz', 'x-vault-token': 'short' };
  const masks = { 'X-Shop': 'north', Authorization: '••••abcd', 'X-Api-Key': '••••wxyz', 'x-vault-token': '••••' };

  describe.each(headerKinds)('credentials in the headers of a $name', ({ name, path, body, sent, shown, idOf }) => {
    const make = async (own: Headers = headers, more: object = {}, key?: string) => {
      const isOfApplication = path.includes('endpoint');
      const all = { ...body, headers: sent(own), ...(isOfApplication && { applicationId }), ...more };
      return world.request('POST', path, { body: all, ...(key !== undefined && { key }) });
    };
    const made = async (own?: Headers) => {
      const created = await make(own);
      expect([created.status, created.text.includes('canary')]).toEqual([201, false]);
      return idOf(created.body);
    };
    const change = (id: string, changed: object, key = world.admin) => world.request('PATCH', `${path}/${id}`, { body: changed, key });
    const read = (id: string, key = world.admin) => world.request('GET', `${path}/${id}`, { key });

    test('are masked in every answer, for a viewer as for an admin', async () => {
      const id = await made();
      for (const key of [viewer, developer, world.admin]) {
        expect(shown((await read(id, key)).body)).toEqual(masks);
        expect((await world.request('GET', path, { key })).text).not.toContain('canary');
      }
      expect((await change(id, { url: 'https://shop.example/other' })).text).not.toContain('canary');
    });

    test('stay when their masks are sent back, and go when others take their place', async () => {
      const id = await made();
      expect((await change(id, { headers: sent(masks) })).status).toBe(200);
      expect(shown((await read(id)).body)).toEqual(masks);
      const lower = { authorization: masks.Authorization, 'x-api-key': 'another-key-0001' };
      expect((await change(id, { headers: sent(lower) })).status).toBe(200);
      expect(shown((await read(id)).body)).toEqual({ authorization: '••••abcd', 'x-api-key': '••••0001' });
    });

    test('are not taken from the mask of something else', async () => {
      const id = await made();
      for (const wrong of [{ Authorization: '••••wxyz' }, { 'X-Shop': '••••' }, { 'X-Other-Token': masks.Authorization }] as Headers[]) {
        const answer = await change(id, { headers: sent(wrong) });
        expect([wrong, answer.status, answer.text]).toEqual([wrong, 400, expect.stringMatching(/is a masked value/)]);
      }
      expect((await make({ Authorization: '••••abcd' })).status).toBe(400);
      expect(shown((await read(id)).body)).toEqual(masks);
    });

    test('are not sent to another origin by who does not show that they know them', async () => {
      const id = await made();
      const elsewhere = { url: 'https://evil.example/' };
      for (const kept of [elsewhere, { ...elsewhere, headers: sent(masks) }]) {
        const refused = await change(id, kept, developer);
        expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('another origin')]);
      }
      for (const key of [developer, undefined]) {
        const inClear = await change(id, { url: 'http://shop.example/in' }, key);
        // Endpoints take no http at all.
        expect([inClear.status, inClear.text]).toEqual([
          400,
          expect.stringContaining(name === 'webhook endpoint' ? 'https' : 'another origin'),
        ]);
      }
      expect((await change(id, { ...elsewhere, headers: sent(headers) }, developer)).status).toBe(200);
      expect((await change(id, { url: 'https://third.example/' })).status).toBe(200);
      expect((await change(id, { url: 'https://fourth.example/', headers: sent({ 'X-Shop': 'north' }) }, developer)).status).toBe(200);
    });
  });

  describe.each([
    { kind: 'Destination', path: '/api/destinations', specOf: (own: object) => ({ http: { url: 'https://shop.example/', ...own } }) },
    { kind: 'HttpCronJob', path: '/api/cron', specOf: (own: object) => ({ schedule: '0 6 * * *', url: 'https://shop.example/', ...own }) },
  ] as const)('credentials in the headers of the resource $kind', ({ kind, path, specOf }) => {
    const literal = specOf({ headers: [{ name: 'Authorization', value: 'Bearer canary-abcd' }] });
    const metadataOf = (name: string) => ({ namespace: 'acme', name });
    const headersOf = async (name: string) => {
      const { spec } = await world.store.get(kind, metadataOf(name));
      return 'http' in spec ? spec.http?.headers : 'headers' in spec ? spec.headers : undefined;
    };
    const request = (method: string, name: string, body?: object) => world.request(method, `${path}/${name}`, { ...(body && { body }) });
    const shown = async (name: string, text: string) => eventually(async () => expect((await request('GET', name)).text).toContain(text));
    const byReference = [{ name: 'Authorization', valueSecretRef: { name: expect.any(String), key: expect.stringMatching(/^header-/) } }];

    test('are in Secrets when the API was given them, each replaced for another value', async () => {
      const body = { name: `Secret ${kind}`, cronExpression: '0 6 * * *', url: 'https://shop.example/' };
      const headers = { Authorization: 'Bearer canary-abcd' };
      const { cronExpression, ...destination } = body;
      const name = `secret-${kind.toLowerCase()}`;
      const created = await world.request('POST', path, {
        body: { ...(kind === 'HttpCronJob' ? body : destination), slug: name, headers },
      });
      expect(created.status).toBe(201);
      const first = await headersOf(name);
      expect(first).toEqual(byReference);
      await request('PATCH', name, { headers: { Authorization: '••••abcd' } });
      expect(await headersOf(name)).toEqual(first);
      await request('PATCH', name, { headers: { Authorization: 'Bearer another-wxyz' } });
      expect(await headersOf(name)).toEqual(byReference);
      expect(await headersOf(name)).not.toEqual(first);
      await shown(name, '••••wxyz');
      const secret = { ...metadataOf(first?.[0]?.valueSecretRef?.name ?? '') };
      await expect(world.store.getSecret(secret)).rejects.toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
    });

    test('go from the spec into a Secret with the next change, when an earlier release of the API has put them there', async () => {
      const name = `earlier-${kind.toLowerCase()}`;
      await world.store.create({ kind, metadata: metadataOf(name), spec: literal }, { manager: 'posthorn-api' });
      await shown(name, '••••abcd');
      const changed = await request('PATCH', name, { timeoutMs: 1234 });
      expect([changed.status, changed.text.includes('canary')]).toEqual([200, false]);
      expect(await headersOf(name)).toEqual(byReference);
      await shown(name, '••••abcd');
    });

    test('stay in the spec of who else has put them there, and are masked', async () => {
      const name = `foreign-${kind.toLowerCase()}`;
      await world.store.create({ kind, metadata: metadataOf(name), spec: literal }, { manager: 'kubectl' });
      await shown(name, '••••abcd');
      const { status } = await request('PATCH', name, { description: 'changed', headers: { Authorization: '••••abcd' } });
      expect([status, await headersOf(name)]).toEqual([200, [{ name: 'Authorization', value: 'Bearer canary-abcd' }]]);
    });

    test('are read of a Secret, whatever the name of the header, and follow it', async () => {
      const name = `own-${kind.toLowerCase()}`;
      const secret = (value: string) =>
        world.store.apply(
          { kind: 'Secret', metadata: metadataOf(name), data: { team: Buffer.from(value).toString('base64') } },
          { manager: 'kubectl', force: true },
        );
      await secret('canary-team-abcd');
      const spec = specOf({ headers: [{ name: 'X-Team', valueSecretRef: { name, key: 'team' } }] });
      await world.store.create({ kind, metadata: metadataOf(name), spec }, { manager: 'kubectl' });
      await shown(name, '••••abcd');
      await secret('canary-team-wxyz');
      await shown(name, '••••wxyz');
      expect((await request('PATCH', name, { url: 'https://evil.example/' })).status).toBe(409);
    });

    test('of a Secret that the API made for another object are not sent', async () => {
      const body = {
        name: `Victim ${kind}`,
        slug: `victim-${kind.toLowerCase()}`,
        url: 'https://shop.example/',
        headers: { 'X-Api-Key': 'canary-abcd' },
      };
      await world.request('POST', path, { body: kind === 'HttpCronJob' ? { ...body, cronExpression: '0 6 * * *' } : body });
      const stolen = await headersOf(body.slug);
      expect(stolen?.[0]?.valueSecretRef).toBeDefined();
      const name = `thief-${kind.toLowerCase()}`;
      await world.store.create({ kind, metadata: metadataOf(name), spec: specOf({ headers: stolen }) }, { manager: 'kubectl' });
      await eventually(async () => {
        const { status } = await world.store.get(kind, metadataOf(name));
        expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'ResolvedRefs', reason: 'SecretNotShared' }));
      });
      expect((await request('GET', name)).text).not.toContain('abcd');
    });
  });

  describe('credentials in the headers of a destination', () => {
    const exportOf = (query = '', accept?: string) =>
      world.request('GET', `/api/destinations/export${query}`, { ...(accept !== undefined && { headers: { accept } }) });

    test('credentials in the headers of a destination are redacted in an export, unless an admin requests them', async () => {
      const { id } = await world.create('destinations', { url: 'https://shop.example/', headers });
      const { body, text } = await exportOf(`?ids=${id}`);
      const redacted = '***REDACTED***';
      expect(body.destinations).toMatchObject([
        { headers: { 'X-Shop': 'north', Authorization: redacted, 'X-Api-Key': redacted, 'x-vault-token': redacted } },
      ]);
      expect(text).not.toContain('canary');
      expect((await exportOf(`?ids=${id}&includeSensitive=true`)).body.destinations).toMatchObject([{ headers }]);
      const yaml = (await exportOf(`?ids=${id}`, 'application/yaml')).text;
      expect([yaml.includes('canary'), yaml.includes('short'), yaml.includes('north')]).toEqual([false, false, true]);
      for (const key of ['header-authorization', 'header-x-api-key', 'header-x-vault-token']) expect(yaml).toContain(`key: ${key}`);
      const whole = (await exportOf(`?ids=${id}&includeSensitive=true`, 'application/yaml')).text;
      expect(whole).toContain('header-x-api-key: canary-key-wxyz');
    });

    test('credentials in the headers of a destination make an imported destination wait for them, and keep the stored ones on overwrite', async () => {
      const { slug, name } = await world.create('destinations', { url: 'https://shop.example/', headers });
      const document = (await exportOf(`?ids=${slug}`)).body;
      const importInto = (key: string, conflictStrategy: string) =>
        world.request('POST', '/api/destinations/import', { key, body: { destinations: document.destinations, conflictStrategy } });
      await world.addOrganization(`other-${slug}`);
      const key = await world.addKey(`other-${slug}`);
      for (const strategy of ['skip', 'overwrite']) {
        const { body } = await importInto(key, strategy);
        expect(body).toMatchObject({ success: true, warnings: [expect.stringContaining('send its headers')] });
      }
      const refused = await world.request('PATCH', `/api/destinations/${slug}`, { key, body: { enabled: true } });
      expect([refused.status, refused.body.code]).toEqual([400, 'CREDENTIALS_REQUIRED']);
      const given = await world.request('PATCH', `/api/destinations/${slug}`, { key, body: { enabled: true, headers } });
      expect([given.status, given.body.enabled, given.body.headers]).toEqual([200, true, masks]);

      expect((await importInto(world.admin, 'overwrite')).body).toMatchObject({ details: { overwritten: [name] }, warnings: [] });
      expect((await exportOf(`?ids=${slug}&includeSensitive=true`)).body.destinations).toMatchObject([{ headers, isActive: true }]);
    });
  });
}
