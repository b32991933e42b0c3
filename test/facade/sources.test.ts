import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Answer, type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
});
afterAll(() => world.stop());

let made = 0;
const create = (body: object): Promise<Answer> => world.request('POST', '/api/sources', { body: { name: `Source ${++made}`, ...body } });
const patch = (id: string, body: object): Promise<Answer> => world.request('PATCH', `/api/sources/${id}`, { body });

describe('provider custom', () => {
  const verification = { algorithm: 'sha1', header: 'X-Signed', encoding: 'base64', prefix: 'v1=' };

  test('keeps the scheme it is given, and fills in defaults', async () => {
    const { status, body } = await create({ provider: 'custom', verification: { header: 'X-Signed' } });
    expect([status, body.verification]).toEqual([201, { algorithm: 'sha256', header: 'X-Signed', encoding: 'hex', prefix: '' }]);
    expect((await patch(body.id, { verification })).body.verification).toEqual(verification);
    expect((await patch(body.id, { name: 'Renamed' })).body).toMatchObject({ name: 'Renamed', verification });
  });

  test('needs a scheme, and no other provider has one', async () => {
    expect(await create({ provider: 'custom' })).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } });
    expect(await create({ provider: 'github', verification })).toMatchObject({ status: 400, body: { code: 'VALIDATION_FAILED' } });
  });

  test('loses the scheme when it becomes another', async () => {
    const { body } = await create({ provider: 'custom', verification });
    const changed = await patch(body.id, { provider: 'stripe' });
    expect([changed.status, changed.body.provider, changed.body.verification]).toEqual([200, 'stripe', null]);
  });
});

test('a signing secret that the provider cannot have made is said in the conditions, and the answer warns', async () => {
  const { status, headers } = await create({ provider: 'svix', signingSecret: 'not base64 of anything' });
  expect([status, headers.get('warning')]).toEqual([201, '199 - "not yet in force"']);
});
