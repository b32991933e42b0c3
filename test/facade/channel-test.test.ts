import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
  await world.startWorker();
});
afterAll(() => world.stop());

let made = 0;
async function testOf(body: object) {
  const created = await world.request('POST', '/api/notification-channels', { body: { name: `Channel ${++made}`, ...body } });
  expect([created.status, created.text]).toEqual([201, expect.any(String)]);
  return world.request('POST', `/api/notification-channels/${created.body.id}/test`);
}

describe('a test of a channel', () => {
  test('that cannot be reached is answered with 200 and why', async () => {
    const url = 'https://127.0.0.1:9/canary-path';
    const answer = await testOf({ type: 'webhook', config: { url, headers: { 'X-Key': 'canary-header' } } });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ success: false, error: expect.any(String), message: expect.any(String) });
    expect(answer.text).not.toContain('canary');
  });

  test('of type email says what is missing where no server is configured', async () => {
    const answer = await testOf({ type: 'email', config: { addresses: ['team@example.com'] } });
    expect(answer.body).toEqual({
      success: false,
      error: 'not_configured',
      message: 'no SMTP server is configured: e-mail needs POSTHORN_SMTP_HOST and POSTHORN_SMTP_FROM',
    });
  });

  test('that does not exist is 404', async () => {
    expect((await world.request('POST', '/api/notification-channels/nowhere/test')).status).toBe(404);
  });
});
