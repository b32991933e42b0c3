import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newSigningKey } from '../../../src/core/ed25519-keys.ts';
import { eventually } from '../../support/eventually.ts';
import { breakOff } from '../broken-off.ts';
import type { Answer, FacadeWorld } from '../facade-world.ts';

/** What a source takes in and how its secret is rotated, with any store behind the API. */
export function describeSources(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  let made = 0;
  const create = (body: object): Promise<Answer> => world.request('POST', '/api/sources', { body: { name: `Source ${++made}`, ...body } });
  const patch = (id: string, body: object): Promise<Answer> => world.request('PATCH', `/api/sources/${id}`, { body });

  describe('provider custom', () => {
    const verification = { algorithm: 'sha1', header: 'X-Signed', encoding: 'base64', prefix: 'v1=' };

    test('provider custom keeps the scheme it is given, and fills in defaults', async () => {
      const { status, body } = await create({ provider: 'custom', verification: { header: 'X-Signed' } });
      expect([status, body.verification]).toEqual([201, { algorithm: 'sha256', header: 'X-Signed', encoding: 'hex', prefix: '' }]);
      expect((await patch(body.id, { verification })).body.verification).toEqual(verification);
      expect((await patch(body.id, { name: 'Renamed' })).body).toMatchObject({ name: 'Renamed', verification });
    });

    test('provider custom needs a scheme, and no other provider has one', async () => {
      expect(await create({ provider: 'custom' })).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } });
      expect(await create({ provider: 'github', verification })).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } });
    });

    test('provider custom loses the scheme when it becomes another', async () => {
      const { body } = await create({ provider: 'custom', verification });
      const changed = await patch(body.id, { provider: 'stripe' });
      expect([changed.status, changed.body.provider, changed.body.verification]).toEqual([200, 'stripe', null]);
    });
  });

  test('a signing secret that the provider cannot have made is refused, and so is a provider that cannot have made the stored one', async () => {
    const unusable = { signingSecret: 'not base64 of anything' };
    for (const provider of ['svix', 'standard-webhooks']) {
      const answer = await create({ provider, ...unusable });
      expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
      expect(answer.body.message).toContain('signingSecret must be whsec_');
    }
    const { body: source } = await create({ provider: 'github', ...unusable });
    expect((await patch(source.id, { provider: 'svix', ...unusable })).status).toBe(400);
    const { status, body } = await patch(source.id, { provider: 'svix' });
    expect([status, body.message]).toEqual([
      400,
      expect.stringMatching(/^The stored secret cannot be one of svix: send signingSecret too/),
    ]);
    expect((await patch(source.id, { provider: 'stripe' })).status).toBe(200);
    expect((await world.request('POST', `/api/sources/${source.id}/rotate-secret`, { body: unusable })).status).toBe(400);
  });

  test('verification is not taken from a custom source, and goes with another provider', async () => {
    const { body: source } = await create({ provider: 'custom', verification: { header: 'X-Signed' } });
    const refused = await patch(source.id, { verification: null });
    expect([refused.status, refused.body.code]).toEqual([400, 'VALIDATION_FAILED']);
    expect((await patch(source.id, { provider: 'generic', verification: null })).body.verification).toBeNull();
  });

  test('invalid signatures are rejected once there is a secret, unless it is said otherwise, also before there is one', async () => {
    const signingSecret = 'a secret of the provider';
    const plain = (await create({ provider: 'github' })).body;
    expect(plain).toMatchObject({ rejectInvalidSignatures: false, hasSigningSecret: false, signingSecretLast4: null });
    const checked = { rejectInvalidSignatures: true, hasSigningSecret: true, signingSecretLast4: 'ider' };
    expect((await patch(plain.id, { signingSecret })).body).toMatchObject(checked);
    expect((await patch(plain.id, { rejectInvalidSignatures: false })).body.rejectInvalidSignatures).toBe(false);
    expect((await patch(plain.id, { name: 'Renamed' })).body.rejectInvalidSignatures).toBe(false);
    expect((await patch(plain.id, { signingSecret: null })).body).toMatchObject({
      rejectInvalidSignatures: false,
      hasSigningSecret: false,
    });
    expect((await patch(plain.id, { signingSecret })).body).toMatchObject(checked);

    const early = (await create({ provider: 'github', rejectInvalidSignatures: false })).body;
    expect((await patch(early.id, early)).body).toEqual(early);
    expect((await patch(early.id, { signingSecret })).body).toMatchObject({ ...checked, rejectInvalidSignatures: false });
    const together = (await create({ provider: 'github' })).body;
    expect((await patch(together.id, { signingSecret, rejectInvalidSignatures: false })).body.rejectInvalidSignatures).toBe(false);
    expect((await patch(together.id, { signingSecret: null, rejectInvalidSignatures: false })).body.rejectInvalidSignatures).toBe(false);
    expect((await create({ provider: 'github', signingSecret: 'eleven-char' })).body.signingSecretLast4).toBeNull();
  });

  test('public keys are secrets of sources that keep Standard Webhooks, and no secret is made in place of one', async () => {
    const publicKey = `whpk_${Buffer.alloc(32, 9).toString('base64')}`;
    const { body: source } = await create({ provider: 'standard-webhooks', signingSecret: publicKey });
    expect(source).toMatchObject({ hasSigningSecret: true, rejectInvalidSignatures: true });
    const rotate = (body: object) => world.request('POST', `/api/sources/${source.id}/rotate-secret`, { body });
    expect(await rotate({})).toMatchObject({ status: 400, body: { message: expect.stringContaining('verifies with a public key') } });
    expect(await rotate({ signingSecret: newSigningKey() })).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(/^signingSecret contains a whsk_ key/) },
    });
    const { status, body } = await rotate({ signingSecret: `whpk_${Buffer.alloc(32, 8).toString('base64')}` });
    expect([status, body.previousSecretExpiresAt]).toEqual([200, expect.any(String)]);
  });

  test('a handshake has a verify token that is never shown, and that goes with another handshake', async () => {
    const { body: plain } = await create({});
    expect(plain).toMatchObject({ handshake: null, hasVerifyToken: false });
    const { status, body } = await create({ handshake: 'hub_challenge', verifyToken: 'the verify token' });
    expect([status, body]).toEqual([201, expect.objectContaining({ handshake: 'hub_challenge', hasVerifyToken: true })]);
    expect(JSON.stringify(body)).not.toContain('the verify token');
    expect((await patch(body.id, { name: 'Renamed' })).body).toMatchObject({ handshake: 'hub_challenge', hasVerifyToken: true });
    expect((await patch(body.id, { verifyToken: null })).body).toMatchObject({ handshake: 'hub_challenge', hasVerifyToken: false });
    expect((await patch(body.id, { verifyToken: 'another' })).body.hasVerifyToken).toBe(true);
    expect((await patch(body.id, { handshake: 'challenge' })).body).toMatchObject({ handshake: 'challenge', hasVerifyToken: false });
    expect((await patch(body.id, { handshake: null })).body).toMatchObject({ handshake: null, hasVerifyToken: false });
    const { body: signing } = await create({ handshake: 'crc_token', signingSecret: 'a secret' });
    expect(await patch(signing.id, { signingSecret: null })).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } });
    expect((await patch(signing.id, { signingSecret: null, handshake: null })).status).toBe(200);
  });

  describe('what a source takes in', () => {
    const fields = {
      rateLimitPerMinute: 100,
      ipFilterMode: 'both',
      ipAllowlist: ['10.0.0.0/8', '2001:db8::/32'],
      ipDenylist: ['10.1.0.0/16'],
      dedupStrategy: 'provider_id',
      dedupHeader: 'X-Delivery',
      dedupWindowHours: 168,
    };
    const defaults = {
      rateLimitPerMinute: null,
      ipFilterMode: 'none',
      ipAllowlist: [],
      ipDenylist: [],
      dedupStrategy: 'auto',
      dedupHeader: null,
      dedupWindowHours: 24,
    };

    test('what a source takes in has defaults, and every field can be set, changed and sent back', async () => {
      const { body: plain } = await create({});
      expect(plain).toMatchObject(defaults);
      const { status, body } = await create({ description: 'Orders', ...fields });
      expect([status, body]).toEqual([201, expect.objectContaining({ description: 'Orders', ...fields })]);
      expect((await patch(body.id, body)).body).toMatchObject(fields);
      expect((await patch(body.id, { ipDenylist: [], ipFilterMode: 'allowlist' })).body).toMatchObject({
        ...fields,
        ipFilterMode: 'allowlist',
        ipDenylist: [],
      });
      expect((await patch(body.id, { ...defaults, description: null })).body).toMatchObject({ ...defaults, description: null });
      expect((await patch(plain.id, plain)).body).toMatchObject(defaults);
    });

    test.each([
      ['a limit of 0', { rateLimitPerMinute: 0 }, 'rateLimitPerMinute'],
      ['an address without bits', { ipFilterMode: 'denylist', ipDenylist: ['10.0.0.1'] }, 'ipDenylist.0'],
      ['bits that are too many', { ipFilterMode: 'denylist', ipDenylist: ['10.0.0.0/33'] }, 'ipDenylist.0'],
      ['an IPv4 network in IPv6 clothes', { ipFilterMode: 'denylist', ipDenylist: ['::ffff:10.0.0.0/104'] }, 'ipDenylist.0'],
      ['an allowlist that lets nobody in', { ipFilterMode: 'allowlist' }, 'ipAllowlist'],
      ['a delivery id that nobody can find', { dedupStrategy: 'provider_id' }, 'dedupHeader'],
      ['a window of 169 hours', { dedupWindowHours: 169 }, 'dedupWindowHours'],
      ['a window of half an hour', { dedupWindowHours: 0.5 }, 'dedupWindowHours'],
      ['an unknown strategy', { dedupStrategy: 'body' }, 'dedupStrategy'],
    ])('%s is refused and the field is named', async (_name, body, field) => {
      const answer = await create(body);
      expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
      expect(answer.body.message.replaceAll(/\[(\d+)\]/g, '.$1')).toContain(field);
    });
  });

  describe('rotating the secret', () => {
    const rotate = (id: string, body: object = {}): Promise<Answer> => world.request('POST', `/api/sources/${id}/rotate-secret`, { body });
    const secretsOf = async (): Promise<string[]> => {
      const { items } = await world.store.list('Secret', { namespace: 'acme' });
      const secrets = await Promise.all(items.map(({ metadata }) => world.store.getSecret(metadata)));
      return secrets.flatMap(({ data = {} }) => Object.keys(data));
    };

    test('rotating the secret answers a new secret once, and says until when the old one is taken', async () => {
      const { body: source } = await create({ provider: 'github', signingSecret: 'the first secret' });
      const startedMs = Date.now();
      const { status, body } = await rotate(source.id);
      expect(status).toBe(200);
      expect(body.signingSecret).toMatch(/^[0-9a-f]{64}$/);
      expect(Date.parse(body.previousSecretExpiresAt) - startedMs).toBeGreaterThanOrEqual(3_600_000);
      expect(Date.parse(body.previousSecretExpiresAt) - startedMs).toBeLessThan(3_630_000);
      const read = await world.request('GET', `/api/sources/${source.id}`);
      expect(read.body).toMatchObject({ hasSigningSecret: true, signingSecretLast4: body.signingSecret.slice(-4) });
      expect(read.text).not.toContain(body.signingSecret);
      expect(world.logLines.join('\n')).not.toContain(body.signingSecret);
      const { spec } = await world.store.get('Source', { namespace: 'acme', name: source.slug });
      expect(spec.rotation).toMatchObject({ validUntil: body.previousSecretExpiresAt });
    });

    test('rotating the secret takes the secret that is sent, and ends the old ones at once where that is wished', async () => {
      const { body: source } = await create({ provider: 'stripe', signingSecret: 'whsec_first' });
      const before = await secretsOf();
      expect((await rotate(source.id, { signingSecret: 'whsec_second' })).body.signingSecret).toBe('whsec_second');
      expect((await secretsOf()).length).toBe(before.length + 1);
      expect((await rotate(source.id, { signingSecret: 'whsec_third', gracePeriodSeconds: 0 })).body.previousSecretExpiresAt).toBeNull();
      expect((await secretsOf()).length).toBe(before.length);
    });

    test('rotating the secret is ended by a PATCH with another secret, which no old one outlives, and not by one with the secret that is there', async () => {
      const { body: source } = await create({ provider: 'github', signingSecret: 'the first secret' });
      const before = await secretsOf();
      await rotate(source.id, { signingSecret: 'the second secret' });
      const rotationOf = async () => (await world.store.get('Source', { namespace: 'acme', name: source.slug })).spec.rotation;
      const rotation = await rotationOf();
      expect(rotation).toBeDefined();
      expect((await patch(source.id, { signingSecret: 'the second secret' })).status).toBe(200);
      expect(await rotationOf()).toEqual(rotation);
      expect((await patch(source.id, { signingSecret: 'the third secret' })).status).toBe(200);
      expect(await rotationOf()).toBeUndefined();
      expect((await secretsOf()).length).toBe(before.length);
    });

    test('rotating the secret ends no old one before its time: while it holds the next rotation is 409', async () => {
      const { body: source } = await create({ provider: 'github', signingSecret: 'the first secret' });
      const { body: rotated } = await rotate(source.id);
      const metadata = { namespace: 'acme', name: source.slug };
      const { spec } = await world.store.get('Source', metadata);
      const before = await secretsOf();
      const refused = await rotate(source.id);
      expect([refused.status, refused.body.code]).toEqual([409, 'CONFLICT']);
      expect(refused.body.message).toContain(rotated.previousSecretExpiresAt);
      expect((await world.store.get('Source', metadata)).spec).toEqual(spec);
      expect(await secretsOf()).toEqual(before);
      const ended = { ...spec.rotation, validUntil: new Date(Date.now() - 1000).toISOString() };
      await world.store.apply({ kind: 'Source', metadata, spec: { ...spec, rotation: ended } }, { manager: 'posthorn-api' });
      expect((await rotate(source.id)).status).toBe(200);
    });

    test.each([{}, { signingSecret: 'the second secret' }])(
      'is done once by two requests with %j, when the first was broken off',
      async (body) => {
        const { body: source } = await create({ provider: 'github', signingSecret: 'the first secret' });
        const headers = { 'idempotency-key': `rotate-${source.id}` };
        const post = (): Promise<Answer> => world.request('POST', `/api/sources/${source.id}/rotate-secret`, { body, headers });
        const first = await post();
        expect(first.status).toBe(200);
        await breakOff(world, headers['idempotency-key']);
        const second = await post();
        expect([second.status, second.body]).toEqual([200, first.body]);
        expect(second.headers.get('idempotent-replayed')).toBeNull();
      },
    );

    test('rotating the secret gives a source its first secret', async () => {
      const { body: source } = await create({ provider: 'standard-webhooks' });
      const { body } = await rotate(source.id);
      expect(body).toEqual({ signingSecret: expect.stringMatching(/^whsec_/), previousSecretExpiresAt: null });
      const { body: read } = await world.request('GET', `/api/sources/${source.id}`);
      expect(read).toMatchObject({ hasSigningSecret: true, rejectInvalidSignatures: true });
    });

    test.each([
      ['no secret for a provider that makes it', 'slack', {}],
      ['the secret that is there', 'github', { signingSecret: 'the first secret' }],
      ['a grace of more than a day', 'github', { gracePeriodSeconds: 86_401 }],
      ['an empty secret', 'github', { signingSecret: '' }],
    ])('rotating the secret refuses %s', async (_name, provider, body) => {
      const { body: source } = await create({ provider, signingSecret: 'the first secret' });
      expect(await rotate(source.id, body)).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } });
      const { spec } = await world.store.get('Source', { namespace: 'acme', name: source.slug });
      expect(spec.rotation).toBeUndefined();
    });

    test('rotating the secret is for a source that is there, and for keys that may write', async () => {
      expect((await rotate('nothing')).body.code).toBe('RESOURCE_NOT_FOUND');
      const key = await world.addKey('acme', { role: 'viewer' });
      const { body: source } = await create({ provider: 'github', signingSecret: 'the first secret' });
      expect((await world.request('POST', `/api/sources/${source.id}/rotate-secret`, { key, body: {} })).status).toBe(403);
    });

    test('a secret that Git has set is left to Git', async () => {
      const metadata = { name: 'in-git', namespace: 'acme' };
      const spec = { provider: 'github' as const, signingSecretRef: { name: 'in-git', key: 'secret' } };
      await world.store.apply({ kind: 'Secret', metadata, data: { secret: Buffer.from('x').toString('base64') } }, { manager: 'argocd' });
      await world.store.apply({ kind: 'Source', metadata, spec }, { manager: 'argocd' });
      await eventually(async () => expect((await world.request('GET', '/api/sources/in-git')).status).toBe(200));
      const answer = await rotate('in-git');
      expect([answer.status, answer.body.code]).toEqual([409, 'FIELD_MANAGED']);
      expect(answer.body.message).toContain('argocd');
      expect((await world.store.get('Source', metadata)).spec).toMatchObject(spec);
    });
  });

  test('a source with routes cannot be deleted, one without can', async () => {
    const { body: source } = await create({});
    const { body: target } = await world.request('POST', '/api/destinations', { body: { name: 'Target', url: 'https://t.example/' } });
    const wanted = { name: 'Used', sourceId: source.id, destinationIds: [target.id] };
    const { body: route } = await world.request('POST', '/api/routes', { body: wanted });
    const refused = await world.request('DELETE', `/api/sources/${source.id}`);
    expect([refused.status, refused.body.code]).toEqual([409, 'IN_USE']);
    expect(refused.body.message).toContain(route.slug);
    await world.request('DELETE', `/api/routes/${route.id}`);
    expect((await world.request('DELETE', `/api/sources/${source.id}`)).status).toBe(204);
  });
}
