import { expect, test } from '@jest/globals';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import type { CompleteStore } from '../../src/store/store.ts';
import { eventually } from '../support/eventually.ts';
import { withMethod } from '../support/with-method.ts';
import { startFacadeWorld } from './facade-world.ts';
import { describeSecretUse } from './suites/secret-use.ts';

describeSecretUse(() => startFacadeWorld());

test('where Secrets must consent, the API shows nothing of one without the label', async () => {
  const world = await startFacadeWorld({ requiresSecretConsent: true });
  try {
    const metadata = { namespace: 'acme', name: 'own' };
    const data = { token: Buffer.from('canary-token-abcd').toString('base64') };
    await world.store.apply({ kind: 'Secret', metadata, data }, { manager: 'kubectl' });
    const auth = { type: 'bearer', tokenSecretRef: { name: 'own', key: 'token' } };
    const spec = { http: { url: 'https://shop.example/a', auth } };
    await world.store.apply({ kind: 'Destination', metadata: { namespace: 'acme', name: 'shop' }, spec }, { manager: 'kubectl' });
    const shown = async () => (await world.request('GET', '/api/destinations/shop')).body.authConfig;
    await eventually(async () => expect(await shown()).toEqual({ token: '••••' }));
    const labels = { 'posthorn.dev/usable': 'true' };
    await world.store.apply({ kind: 'Secret', metadata: { ...metadata, labels }, data }, { manager: 'kubectl' });
    await eventually(async () => expect(await shown()).toEqual({ token: '••••abcd' }));
  } finally {
    await world.stop();
  }
});

test('what is not published yet is waited for, then the answer says to send the request again; what needs none of it continues', async () => {
  const store = new MemoryStore(systemClock);
  const released = Promise.withResolvers<void>();
  const late: CompleteStore['getSecret'] = async (key) => {
    await released.promise;
    return store.getSecret(key);
  };
  const world = await startFacadeWorld({ store: withMethod(store, 'getSecret', late), storeOfFacade: store, inForceTimeoutMs: 200 });
  try {
    const auth = { authType: 'bearer', authConfig: { token: 'first-token-abcd' } };
    const made = await world.request('POST', '/api/destinations', { body: { name: 'Shop', url: 'https://shop.example/', ...auth } });
    expect([made.status, made.body.authConfig]).toEqual([201, { token: '••••' }]);
    const patch = (body: object) => world.request('PATCH', '/api/destinations/shop', { body });
    const again = { status: 503, body: { code: 'UNAVAILABLE', message: expect.stringContaining('send the request again') } };
    const merged = await patch({ authConfig: { token: '••••abcd' } });
    expect(merged).toMatchObject(again);
    expect(merged.headers.get('retry-after')).toBe('1');
    expect(await patch({ url: 'https://other.example/' })).toMatchObject(again);
    expect(await world.request('GET', '/api/destinations/export?includeSensitive=true')).toMatchObject(again);
    expect((await patch({ ...made.body, description: 'as it was shown' })).status).toBe(200);
    expect((await patch({ authConfig: { token: 'other-token-wxyz' } })).status).toBe(200);
    released.resolve();
    const shown = async () => (await world.request('GET', '/api/destinations/shop')).body.authConfig;
    await eventually(async () => expect(await shown()).toEqual({ token: '••••wxyz' }));
    expect((await patch({ authConfig: { token: '••••wxyz' }, url: 'https://other.example/' })).status).toBe(200);
  } finally {
    released.resolve();
    await world.stop();
  }
});
