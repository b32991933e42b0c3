import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld({ mailDomains: ['example.com', '*.example.org'] });
});
afterAll(() => world.stop());

const problem = 'this installation sends no e-mail to a@evil.example: it allows example.com, *.example.org';
const email = (...addresses: string[]) => ({ type: 'email', name: 'Team', config: { addresses } });

async function conditionOf(kind: 'NotificationChannel' | 'Route', name: string, type: string) {
  const object = await world.store.get(kind, { namespace: 'acme', name });
  return object?.status?.conditions?.find((condition) => condition.type === type);
}

describe('an address of a domain that the installation does not send to', () => {
  test('an address of a domain that the installation does not send to is 400 INVALID_CONFIG in a channel, on create and on change; others are taken', async () => {
    const refused = await world.request('POST', '/api/notification-channels', { body: email('team@example.com', 'a@evil.example') });
    expect([refused.status, refused.body]).toEqual([
      400,
      { error: 'Bad Request', code: 'INVALID_CONFIG', message: `config.addresses: ${problem}.` },
    ]);
    const { id } = await world.create('notification-channels', email('team@EXAMPLE.com', 'ops@eu.example.org'));
    const changed = await world.request('PATCH', `/api/notification-channels/${id}`, {
      body: { config: { addresses: ['a@evil.example'] } },
    });
    expect([changed.status, changed.body.code]).toEqual([400, 'INVALID_CONFIG']);
  });

  test('an address of a domain that the installation does not send to is 400 in notifyEmails of a route', async () => {
    const source = await world.create('sources', {});
    const destination = await world.create('destinations', { url: 'https://hooks.example.com/' });
    const route = { name: 'Mails', sourceId: source.id, destinationIds: [destination.id] };
    const refused = await world.request('POST', '/api/routes', { body: { ...route, notifyEmails: 'team@example.com,a@evil.example' } });
    expect([refused.status, refused.body]).toEqual([
      400,
      { error: 'Bad Request', code: 'VALIDATION_FAILED', message: `notifyEmails: ${problem}.` },
    ]);
    const { id } = await world.create('routes', { ...route, notifyEmails: 'team@example.com' });
    expect((await world.request('PATCH', `/api/routes/${id}`, { body: { notifyEmails: 'a@evil.example' } })).status).toBe(400);
  });

  test('an address of a domain that the installation does not send to in a manifest shows in the conditions: the channel is not accepted, the route is in force', async () => {
    const apply = { manager: 'kubectl' };
    const channel = { type: 'email' as const, email: { addresses: ['a@evil.example'] } };
    await world.store.apply({ kind: 'NotificationChannel', metadata: { namespace: 'acme', name: 'evil' }, spec: channel }, apply);
    await eventually(async () =>
      expect(await conditionOf('NotificationChannel', 'evil', 'Accepted')).toMatchObject({
        status: 'False',
        reason: 'AddressNotAllowed',
        message: `spec.email.addresses: ${problem}`,
      }),
    );
    const source = await world.create('sources', {});
    const destination = await world.create('destinations', { url: 'https://hooks.example.com/' });
    const spec = {
      sourceRef: { name: source.slug },
      destinationRefs: [{ name: destination.slug }],
      notifications: { emails: ['a@evil.example'] },
    };
    await world.store.apply({ kind: 'Route', metadata: { namespace: 'acme', name: 'evil' }, spec }, apply);
    await eventually(async () => {
      expect(await conditionOf('Route', 'evil', 'ResolvedRefs')).toMatchObject({ status: 'False', reason: 'AddressNotAllowed' });
      expect(await conditionOf('Route', 'evil', 'Programmed')).toMatchObject({ status: 'True' });
    });
  });
});
