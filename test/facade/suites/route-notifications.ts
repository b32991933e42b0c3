import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../support/eventually.ts';
import type { FacadeWorld } from '../facade-world.ts';

/** Recipients of a route, with any store behind the API. */
export function describeRouteNotifications(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const patch = (id: string, body: object) => world.request('PATCH', `/api/routes/${id}`, { body });
  const channel = () => world.create('notification-channels', { type: 'email', config: { addresses: ['team@example.com'] } });
  async function route(body: object = {}) {
    const [source, destination] = await Promise.all([
      world.create('sources', {}),
      world.create('destinations', { url: 'https://a.example/' }),
    ]);
    return world.create('routes', { sourceId: source.id, destinationIds: [destination.id], ...body });
  }
  const stored = async (slug: string) => world.store.get('Route', { namespace: 'acme', name: slug });
  const record = async (id: string) => JSON.parse((await world.redis.client.hget('test:{cfg}:rec:route', id)) ?? 'null');

  const none = {
    notifyOnFailure: false,
    notifyOnSuccess: false,
    notifyOnRecovery: false,
    notifyEmails: null,
    notificationChannelIds: null,
    failureThreshold: 3,
  };

  test('a route sends no alerts unless it is asked to', async () => {
    const made = await route();
    expect(made).toMatchObject(none);
    expect((await stored(made.slug)).spec.notifications).toBeUndefined();
    expect(await record(made.id)).not.toHaveProperty('notifications');
  });

  test('flags, addresses, channels and threshold are taken, read back, and in force', async () => {
    const [one, two] = [await channel(), await channel()];
    const wanted = {
      notifyOnFailure: true,
      notifyOnSuccess: true,
      notifyOnRecovery: true,
      notifyEmails: 'ops@example.com,dev@example.com',
      notificationChannelIds: [one.id, two.id],
      failureThreshold: 5,
    };
    const made = await route({ ...wanted, notifyEmails: ' ops@example.com, dev@example.com,', notificationChannelIds: [one.slug, two.id] });
    expect(made).toMatchObject(wanted);
    expect((await record(made.id)).notifications).toEqual({
      onFailure: true,
      onSuccess: true,
      onRecovery: true,
      failureThreshold: 5,
      channelIds: [one.id, two.id],
      emails: ['ops@example.com', 'dev@example.com'],
    });
    expect((await patch(made.id, made)).body).toMatchObject(wanted);
    expect((await patch(made.id, none)).body).toMatchObject(none);
  });

  test('a change of one of them keeps the others', async () => {
    const { id } = await route({ notifyOnFailure: true, notifyEmails: 'ops@example.com' });
    expect((await patch(id, { failureThreshold: 1 })).body).toMatchObject({
      notifyOnFailure: true,
      notifyEmails: 'ops@example.com',
      failureThreshold: 1,
    });
    expect((await patch(id, { notifyEmails: null })).body).toMatchObject({ notifyOnFailure: true, notifyEmails: null });
  });

  test('an address keeps its place whatever characters it has', async () => {
    const { id } = await route({ notifyOnFailure: true, notifyEmails: 'r&d@example.com,ops@example.com' });
    expect((await patch(id, { priority: 1 })).body.notifyEmails).toBe('r&d@example.com,ops@example.com');
    expect((await patch(id, { notifyEmails: 'r&d@example.com' })).body.notifyEmails).toBe('r&d@example.com');
    expect((await patch(id, { notifyEmails: null })).body.notifyEmails).toBeNull();
  });

  test('no channel is not all channels: an empty list stays beside what changes, until null takes it away', async () => {
    const { id, slug } = await route({ notifyOnFailure: true, notificationChannelIds: [] });
    const sent = [
      { priority: 1 },
      { notifyOnFailure: false },
      { failureThreshold: 9, notifyEmails: 'ops@example.com' },
      { notifyEmails: null },
    ];
    for (const body of sent) expect((await patch(id, body)).body.notificationChannelIds).toEqual([]);
    expect((await patch(id, { notificationChannelIds: null })).body.notificationChannelIds).toBeNull();
    expect((await stored(slug)).spec.notifications).not.toHaveProperty('channelRefs');
    expect((await patch(id, { priority: 2 })).body.notificationChannelIds).toBeNull();
  });

  test.each([
    ['an address that is none', { notifyEmails: 'ops@example.com,nobody' }],
    ['an address with a line break', { notifyEmails: 'ops@example.com\r\nBcc: x@example.com' }],
    ['21 addresses', { notifyEmails: Array.from({ length: 21 }, (_, i) => `a${i}@example.com`).join(',') }],
    ['a flag that is text', { notifyOnFailure: 'yes' }],
    ['a threshold of 0', { failureThreshold: 0 }],
    ['a channel that does not exist', { notificationChannelIds: ['nowhere'] }],
  ])('%s is refused', async (_, body) => {
    const { id } = await route();
    expect((await patch(id, body)).status).toBe(400);
  });

  test('a channel that is named twice is refused', async () => {
    const { id, slug } = await channel();
    expect((await patch((await route()).id, { notificationChannelIds: [id, slug] })).status).toBe(400);
  });

  test('a deleted channel leaves the lists of the routes; one that was alone leaves an empty list, not all channels', async () => {
    const [one, two] = [await channel(), await channel()];
    const both = await route({ notifyOnFailure: true, notificationChannelIds: [one.id, two.id] });
    const alone = await route({ notifyOnFailure: true, notificationChannelIds: [one.id] });
    expect((await world.request('DELETE', `/api/notification-channels/${one.id}`)).status).toBe(204);
    expect((await world.request('GET', `/api/routes/${both.id}`)).body.notificationChannelIds).toEqual([two.id]);
    expect((await world.request('GET', `/api/routes/${alone.id}`)).body.notificationChannelIds).toEqual([]);
    await eventually(async () => expect((await record(alone.id)).notifications.channelIds).toEqual([]));
  });

  test('a channel in the list of a route that Git owns stays, and the answer names the route', async () => {
    const made = await channel();
    const { slug, sourceId } = await route();
    const { spec } = await stored(slug);
    await world.store.apply(
      {
        kind: 'Route',
        metadata: { name: 'from-git', namespace: 'acme' },
        spec: { sourceRef: spec.sourceRef, destinationRefs: [], notifications: { channelRefs: [{ name: made.slug }] } },
      },
      { manager: 'argocd' },
    );
    expect(sourceId).toBeDefined();
    await eventually(async () => expect((await world.request('GET', '/api/routes?pageSize=100')).text).toContain('from-git'));
    const answer = await world.request('DELETE', `/api/notification-channels/${made.id}`);
    expect(answer).toMatchObject({ status: 409, body: { code: 'FIELD_MANAGED', message: expect.stringContaining('from-git') } });
    expect((await world.request('GET', `/api/notification-channels/${made.id}`)).status).toBe(200);
  });

  test('a channel that is missing makes the route partially in force, and the others get the alerts', async () => {
    const made = await channel();
    const { slug, id } = await route();
    const { spec } = await stored(slug);
    await world.store.apply(
      {
        kind: 'Route',
        metadata: { name: slug, namespace: 'acme' },
        spec: { ...spec, notifications: { onFailure: true, channelRefs: [{ name: made.slug }, { name: 'later' }] } },
      },
      { manager: 'kubectl', force: true },
    );
    const ready = async () => (await stored(slug)).status?.conditions?.find(({ type }) => type === 'Ready');
    await eventually(async () =>
      expect(await ready()).toMatchObject({ status: 'True', reason: 'PartiallyInForce', message: expect.stringContaining('later') }),
    );
    expect((await record(id)).notifications.channelIds).toEqual([made.id]);
    await world.create('notification-channels', { slug: 'later', type: 'email', config: { addresses: ['later@example.com'] } });
    await eventually(async () => expect(await ready()).toMatchObject({ status: 'True', reason: 'Ready' }));
    expect((await record(id)).notifications.channelIds).toHaveLength(2);
  });
}
