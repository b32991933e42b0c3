import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** What a setting is when only a part of it is sent, with any store behind the API. */
export function describePartialSettings(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const url = 'https://hooks.example.com/in';
  const post = (path: string, body: object) => world.request('POST', `/api/${path}`, { body });
  const patch = (id: string, body: object) => world.request('PATCH', `/api/destinations/${id}`, { body });
  const read = async (id: string) => (await world.request('GET', `/api/destinations/${id}`)).body;
  const made = async (body: object): Promise<string> => (await world.create('destinations', { url, ...body })).slug;

  const nothing = { rateLimit: null, rateUnit: null, strict: null, maxConcurrency: null, queueLimit: null };
  const rate = { mode: 'rate', rateLimit: 5, rateUnit: 'minute', strict: true, queueLimit: 10 };

  describe('a part of a retry policy', () => {
    const shown = { maxRetries: 3, initialDelay: 1000, maxDelay: 3_600_000, backoffMultiplier: 4, delays: [5000, 60_000] };

    test.each([
      [{}, shown],
      [{ delays: [7000] }, { ...shown, delays: [7000] }],
      [{ delays: null }, { ...shown, delays: null }],
      [
        { delays: null, maxRetries: 5 },
        { ...shown, delays: null, maxRetries: 5 },
      ],
      [{ maxRetries: 3 }, shown],
      [
        { maxRetries: 3, initialDelay: 500, maxDelay: 2000, backoffMultiplier: 2 },
        { maxRetries: 3, initialDelay: 500, maxDelay: 2000, backoffMultiplier: 2, delays: null },
      ],
      [
        { delays: [100], initialDelay: 3_600_000, maxDelay: 1000 },
        { ...shown, delays: [100], initialDelay: 3_600_000, maxDelay: 1000 },
      ],
      [shown, shown],
    ])('%j changes that and keeps the rest', async (sent, expected) => {
      const id = await made({ retryPolicy: { maxRetries: 3, delays: [5000, 60_000] } });
      const { status, body } = await patch(id, { retryPolicy: sent });
      expect([status, body.retryPolicy]).toEqual([200, expected]);
      expect((await read(id)).retryPolicy).toEqual(expected);
    });

    test('beside delays, which do not use it, is refused, and nothing changes', async () => {
      const id = await made({ retryPolicy: { maxRetries: 3, delays: [5000, 60_000] } });
      for (const [field, value] of Object.entries({ maxRetries: 4, initialDelay: 500, maxDelay: 2000, backoffMultiplier: 2 })) {
        const answer = await patch(id, { retryPolicy: { [field]: value } });
        expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
        expect(answer.body.message).toContain(`retryPolicy.${field} is not used beside retryPolicy.delays`);
      }
      expect((await read(id)).retryPolicy).toEqual(shown);
    });
  });

  describe('a part of a throttle', () => {
    test.each([
      [{ rateLimit: 20 }, { ...nothing, ...rate, rateLimit: 20 }],
      [{ queueLimit: null }, { ...nothing, ...rate, queueLimit: null }],
      [
        { mode: 'rate', rateUnit: 'hour' },
        { ...nothing, ...rate, rateUnit: 'hour' },
      ],
      [{ strict: false }, { ...nothing, ...rate, strict: false }],
      [{ strict: null }, { ...nothing, ...rate, strict: false }],
      [{ maxConcurrency: null }, { ...nothing, ...rate }],
      [{}, { ...nothing, ...rate }],
      [
        { mode: 'concurrency', maxConcurrency: 3 },
        { ...nothing, mode: 'concurrency', maxConcurrency: 3, queueLimit: 10 },
      ],
      [{ mode: 'off' }, { ...nothing, mode: 'off' }],
    ])('%j changes that and keeps the rest', async (sent, expected) => {
      const id = await made({ throttle: rate });
      const { status, body } = await patch(id, { throttle: sent });
      expect([status, body.throttle]).toEqual([200, expected]);
      expect((await read(id)).throttle).toEqual(expected);
    });

    test.each([
      [{ maxConcurrency: 3 }, 'throttle.maxConcurrency is not used with mode rate'],
      [{ rateLimit: null }, 'throttle.rateLimit is required with mode rate'],
      [{ mode: 'concurrency' }, 'throttle.maxConcurrency is required with mode concurrency'],
    ])('%j that does not fit the mode of the destination is refused, and nothing changes', async (sent, message) => {
      const id = await made({ throttle: rate });
      const answer = await patch(id, { throttle: sent });
      expect([answer.status, answer.body.code]).toEqual([400, 'VALIDATION_FAILED']);
      expect(answer.body.message).toContain(message);
      expect((await read(id)).throttle).toEqual({ ...nothing, ...rate });
    });

    test.each(['rateLimit', 'maxConcurrency', 'queueLimit'])(
      'a part of a throttle with %s and no mode makes no destination',
      async (field) => {
        const record = { name: 'No mode', slug: 'no-mode', url, throttle: { [field]: 20 } };
        const created = await post('destinations', record);
        expect([created.status, created.body.message]).toEqual([400, expect.stringContaining(`throttle.${field}`)]);
        const imported = await post('destinations/import', { destinations: [record], conflictStrategy: 'skip' });
        expect(imported.body).toMatchObject({ success: false, errors: [{ message: expect.stringContaining(`throttle.${field}`) }] });
        expect((await world.request('GET', '/api/destinations/no-mode')).status).toBe(404);
      },
    );

    test('a part of a throttle that an answer has shown is taken back', async () => {
      for (const throttle of [undefined, rate, { mode: 'concurrency', maxConcurrency: 2 }]) {
        const before = await read(await made({ throttle }));
        expect((await patch(before.id, { throttle: before.throttle })).body).toEqual(before);
        const { id: _, slug: __, ...again } = before;
        expect((await post('destinations', again)).body.throttle).toEqual(before.throttle);
      }
    });

    test('a part of a throttle leaves to Git what Git owns beside it', async () => {
      const spec = { type: 'http', http: { url }, throttle: { mode: 'rate', rateLimit: 5, rateUnit: 'second', maxConcurrency: 7 } };
      await world.store.apply({ kind: 'Destination', metadata: { name: 'of-git', namespace: 'acme' }, spec }, { manager: 'argocd' });
      await expect(read('of-git')).resolves.toMatchObject({ throttle: { rateLimit: 5 } });
      expect((await patch('of-git', { throttle: { queueLimit: 10 } })).status).toBe(200);
      expect((await patch('of-git', { throttle: { rateLimit: 6 } })).body.code).toBe('FIELD_MANAGED');
    });

    test('a part of a throttle is taken out of one that Git owns, which stays', async () => {
      const spec = { type: 'http', http: { url }, throttle: {} };
      await world.store.apply({ kind: 'Destination', metadata: { name: 'empty-of-git', namespace: 'acme' }, spec }, { manager: 'argocd' });
      await eventually(async () => expect((await patch('empty-of-git', { throttle: { ...rate, queueLimit: 10 } })).status).toBe(200));
      const off = { mode: 'off', rateLimit: null, rateUnit: null, strict: null, queueLimit: null };
      const { status, body } = await patch('empty-of-git', { throttle: off });
      expect([status, body.throttle]).toEqual([200, expect.objectContaining({ mode: 'off', rateLimit: null, queueLimit: null })]);
    });
  });

  test('authConfig null does not pass for the removal of credentials', async () => {
    const id = await made({ authType: 'bearer', authConfig: { token: 'a-long-token-0000001' } });
    const answer = await patch(id, { authConfig: null });
    expect([answer.status, answer.body.message]).toEqual([400, expect.stringContaining('authConfig')]);
    const off = await patch(id, { authType: 'none', authConfig: null });
    expect(off.body).toMatchObject({ authType: 'none', authConfig: null });
  });

  test('a key for a warehouse that has the identity of the platform, or gets it, is refused, not dropped', async () => {
    const config = { bucket: 'acme-events', region: 'eu-central-1', identity: 'platform' };
    const id = await made({ url: undefined, type: 's3', config });
    const keys = { accessKeyId: 'AKIA1', secretAccessKey: 'a-secret-access-key' };
    const both = { name: 'Both', slug: 'both', type: 's3', config: { ...config, ...keys } };
    const { bucket, region } = config;
    const keyed = await made({ url: undefined, type: 's3', config: { bucket, region, ...keys } });
    for (const answer of [
      await patch(id, { config: keys }),
      await patch(id, { config: both.config }),
      await patch(keyed, { config: both.config }),
      await patch(keyed, { config: { ...(await read(keyed)).config, identity: 'platform' } }),
      await post('destinations', both),
    ])
      expect([answer.status, answer.body.code, answer.body.message]).toEqual([
        400,
        'VALIDATION_FAILED',
        'config.accessKeyId is not used with identity platform: leave it out, or send identity keys.',
      ]);
    const imported = await post('destinations/import', { destinations: [both], conflictStrategy: 'skip' });
    expect(imported.body).toMatchObject({ success: false, errors: [{ message: expect.stringContaining('config.accessKeyId') }] });
    expect((await read(keyed)).config).toMatchObject({ accessKeyId: 'AKIA1', identity: 'keys' });
    const lone = await patch(keyed, { config: { identity: 'platform', secretAccessKey: keys.secretAccessKey } });
    expect([lone.status, lone.body.message]).toEqual([400, expect.stringContaining('config.secretAccessKey is not used')]);
    expect((await patch(keyed, { config: { identity: 'platform' } })).body.config).not.toHaveProperty('accessKeyId');
    const { config: shown } = (await patch(id, { config: { ...keys, identity: 'keys' } })).body;
    expect(shown).toMatchObject({ accessKeyId: 'AKIA1', identity: 'keys' });
  });

  test('keys that Git has given to a warehouse beside the identity of the platform are not shown, and stay', async () => {
    const secretAccessKeySecretRef = { name: 'lake', key: 'key' };
    const s3 = { bucket: 'acme-events', region: 'eu-central-1', accessKeyId: 'AKIA1', secretAccessKeySecretRef };
    const spec = { type: 's3', s3, warehouse: { identity: 'platform' } };
    await world.store.apply({ kind: 'Destination', metadata: { name: 'lake', namespace: 'acme' }, spec }, { manager: 'argocd' });
    const { config } = await read('lake');
    expect(config).toEqual({
      bucket: 'acme-events',
      region: 'eu-central-1',
      identity: 'platform',
      fileFormat: 'jsonl',
      partitionBy: 'date',
    });
    expect((await patch('lake', { name: 'Lake', config })).body).toMatchObject({ name: 'Lake', config });
    expect((await world.store.get('Destination', { namespace: 'acme', name: 'lake' })).spec.s3).toEqual(s3);
  });
}
