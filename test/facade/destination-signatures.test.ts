import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ed25519Key, newSigningKey } from '../../src/core/ed25519-keys.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { signaturesOf, verifiesV1a } from '../support/v1a-verification.ts';
import { verifies } from '../support/webhook-verification.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const [key, nextKey] = [newSigningKey(), newSigningKey()] as const;
const publicKeyOf = (text: string): string => {
  const made = ed25519Key(text);
  return made.problem === undefined ? made.publicKey : '';
};
const url = 'https://hooks.example.com/in';
let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
});
afterAll(() => world.stop());

const create = (body: object) => world.request('POST', '/api/destinations', { body: { url, ...body } });
const change = (id: string, body: object) => world.request('PATCH', `/api/destinations/${id}`, { body });
const read = async (id: string, asked: { key?: string } = {}) => (await world.request('GET', `/api/destinations/${id}`, asked)).body;

test('a destination shows the public key of what signs, to viewers too, and never the key', async () => {
  const { status, body } = await create({ name: 'Signed', signatureScheme: 'both', signingSecret: `${secret} ${key}` });
  const shown = { signatureScheme: 'both', publicKey: publicKeyOf(key), previousPublicKeys: [] };
  expect([status, body]).toEqual([201, expect.objectContaining(shown)]);
  const viewer = await world.addKey('acme', { role: 'viewer' });
  expect(await read(body.id, { key: viewer })).toMatchObject(shown);
  for (const text of [JSON.stringify(body), JSON.stringify(await read(body.id)), world.logLines.join('\n')])
    expect(text).not.toContain(key.slice(5, 40));
});

test('a destination changes from v1 to both and v1a with the secret that it has, and shows both public keys while one is replaced', async () => {
  const { id } = (await create({ name: 'Changing', signingSecret: secret })).body;
  expect(await read(id)).toMatchObject({ signatureScheme: 'hmac-sha256', publicKey: null, previousPublicKeys: [] });
  const both = await change(id, { signatureScheme: 'both', signingSecret: `${secret} ${key}` });
  expect(both.body).toMatchObject({ signatureScheme: 'both', publicKey: publicKeyOf(key) });
  expect((await change(id, { signatureScheme: 'ed25519' })).body).toMatchObject({
    signatureScheme: 'ed25519',
    publicKey: publicKeyOf(key),
  });
  const rotated = await change(id, { signingSecret: `${secret} ${nextKey} ${key}` });
  const previousPublicKeys = [{ publicKey: publicKeyOf(key), expiresAt: null }];
  expect(rotated.body).toMatchObject({ signatureScheme: 'ed25519', publicKey: publicKeyOf(nextKey), previousPublicKeys });
  expect((await change(id, { signatureScheme: 'hmac-sha256' })).body).toMatchObject({ signatureScheme: 'hmac-sha256' });
  // What a read shows is taken back as it is, and is no change.
  const shown = await read(id);
  const again = await change(id, shown);
  expect([again.status, again.body.updatedAt]).toEqual([200, shown.updatedAt]);
});

test.each([
  [{ signatureScheme: 'ed25519' }, 'the stored signingSecret contains no whsk_ key, which signatureScheme ed25519 needs.'],
  [{ signatureScheme: 'both', signingSecret: '••••Bwc=' }, 'the stored signingSecret contains no whsk_ key'],
  [{ signatureScheme: 'both', signingSecret: key }, 'signingSecret contains no whsec_ secret, which signatureScheme both needs.'],
  [{ signatureScheme: 'ed25519', signingSecret: null }, 'signatureScheme ed25519 needs a signingSecret.'],
  [{ signingSecret: key }, 'signingSecret contains no whsec_ secret, which signatureScheme hmac-sha256 needs.'],
  [{ signingSecret: `${secret} whsk_${Buffer.alloc(64, 1).toString('base64')}` }, 'contains a whsk_ key that has another public key'],
])('a change to %.60j that finds nothing to sign with is 400 and reports it', async (sent, complaint) => {
  const { id } = (await create({ name: 'Refusing', signingSecret: secret })).body;
  const { status, body } = await change(id, sent);
  expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED']);
  expect(body.message).toContain(complaint);
  expect(JSON.stringify(body)).not.toContain(key.slice(5, 40));
  expect(await read(id)).toMatchObject({ signatureScheme: 'hmac-sha256', signingSecret: '••••Bwc=' });
});

test('an import without its secret is disabled and requires secret and scheme; with both it signs again', async () => {
  const destination = { name: 'Imported', slug: 'imported', url, type: 'http', signatureScheme: 'both', hasSigningSecret: true };
  const { body } = await world.request('POST', '/api/destinations/import', {
    body: { conflictStrategy: 'skip', destinations: [destination] },
  });
  expect(JSON.stringify(body)).toContain('send its signingSecret and signatureScheme, then enable it');
  expect(await read('imported')).toMatchObject({ enabled: false, signatureScheme: 'hmac-sha256' });
  const sent = { signingSecret: `${secret} ${key}`, signatureScheme: 'both', enabled: true };
  expect((await change('imported', sent)).body).toMatchObject({ enabled: true, signatureScheme: 'both', publicKey: publicKeyOf(key) });
});

test('a test of a destination is signed as its deliveries are', async () => {
  const receiver = await startReceiver();
  const worker = await world.startWorker();
  try {
    const { id } = (await create({ name: 'Tested', url: receiver.url, signatureScheme: 'both', signingSecret: `${secret} ${key}` })).body;
    await eventually(async () =>
      expect((await world.request('POST', `/api/destinations/${id}/test`, { body: {} })).body.success).toBe(true),
    );
    const [request] = receiver.requests;
    if (request === undefined) throw new Error('nothing arrived');
    expect(signaturesOf(request.headers).map(({ version }) => version)).toEqual(['v1', 'v1a']);
    expect([verifies(request, secret), verifiesV1a(request, publicKeyOf(key))]).toEqual([true, true]);
  } finally {
    await worker.stop(1000);
    await receiver.close();
  }
});
