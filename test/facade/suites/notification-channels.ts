import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { FacadeWorld } from '../facade-world.ts';

/** Channels of each type and their secrets, with any store behind the API. */
export function describeNotificationChannels(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;
  beforeAll(async () => {
    world = await start();
  });
  afterAll(() => world.stop());

  const path = '/api/notification-channels';
  const slackUrl = 'https://hooks.slack.com/services/T0/B0/canary-slack-abcd';
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const configs = {
    slack: { webhookUrl: slackUrl },
    teams: { webhookUrl: 'https://prod-1.westeurope.logic.azure.com/workflows/canary-teams-abcd' },
    discord: { webhookUrl: 'https://discord.com/api/webhooks/1/canary-discord-abcd' },
    pagerduty: { routingKey: 'canarypagerduty00000000000000abcd', severity: 'critical' },
    email: { addresses: ['team@example.com', 'ops@example.com'] },
    webhook: { url: 'https://alerts.example.com/in', headers: { Authorization: 'Bearer canary-header-abcd' }, secret },
  } as const;
  type Type = keyof typeof configs;
  const types = Object.keys(configs) as Type[];

  const create = (type: Type, body: object = {}) => world.create('notification-channels', { type, config: configs[type], ...body });
  const patch = (id: string, body: object, key?: string) => world.request('PATCH', `${path}/${id}`, { body, key });
  const stored = async (slug: string) => world.store.get('NotificationChannel', { namespace: 'acme', name: slug });

  describe('a channel', () => {
    test.each(types)('a channel of type %s is created, in force, and read back with its secrets masked', async (type) => {
      const { status, body, headers, text } = await world.request('POST', path, {
        body: { name: `Channel ${type}`, type, config: configs[type] },
      });
      expect([status, headers.get('warning')]).toEqual([201, null]);
      expect(body).toMatchObject({
        id: expect.stringMatching(/^nch_[a-z2-7]{26}$/),
        name: `Channel ${type}`,
        type,
        enabled: true,
        lastNotifiedAt: null,
        createdAt: expect.any(String),
      });
      expect(text).not.toContain('canary');
      expect(text).not.toContain(secret);
      expect((await world.request('GET', `${path}/${body.id}`)).body).toEqual(body);
    });

    test('a channel shows four bullets and the last four characters of what is secret, and the rest as it is', async () => {
      expect((await create('slack')).config).toEqual({ webhookUrl: '••••abcd' });
      expect((await create('pagerduty')).config).toEqual({ routingKey: '••••abcd', severity: 'critical' });
      expect((await create('email')).config).toEqual(configs.email);
      expect((await create('webhook')).config).toEqual({
        url: 'https://alerts.example.com/in',
        headers: { Authorization: '••••abcd' },
        secret: `••••${secret.slice(-4)}`,
      });
    });

    test('a channel of type webhook has up to 20 headers', async () => {
      const headers = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`X-Header-${n}`, 'value']));
      const { id, config } = await create('webhook', { config: { url: 'https://a.example/', headers } });
      expect(Object.keys(config.headers)).toEqual(Object.keys(headers));
      const answer = await patch(id, { config: { headers: { ...headers, 'X-More': 'value' } } });
      expect(answer).toMatchObject({ status: 400, body: { code: 'INVALID_CONFIG', message: expect.stringContaining('headers') } });
    });

    test('a channel keeps each of its secrets, also under an Idempotency-Key', async () => {
      const headers = { 'X-First': 'canary-header-one1', 'X-Second': 'canary-header-two2' };
      const body = { name: 'Of two headers', type: 'webhook', config: { url: 'https://alerts.example.com/in', headers } };
      const made = await world.request('POST', path, { body, headers: { 'idempotency-key': 'of-two-headers' } });
      expect([made.status, made.body.config.headers]).toEqual([201, { 'X-First': '••••one1', 'X-Second': '••••two2' }]);
    });

    test('a channel of type pagerduty has the severity error unless another is given', async () => {
      const routingKey = 'a'.repeat(32);
      const { id, config } = await create('pagerduty', { config: { routingKey } });
      expect(config.severity).toBe('error');
      for (const severity of ['critical', 'error', 'warning', 'info']) {
        expect((await create('pagerduty', { config: { routingKey, severity } })).config.severity).toBe(severity);
        expect((await patch(id, { config: { severity } })).body.config.severity).toBe(severity);
      }
    });

    test.each<[string, object, RegExp]>([
      ['a Slack URL elsewhere', { type: 'slack', config: { webhookUrl: 'https://hooks.slack.com.evil.example/x' } }, /hooks\.slack\.com/],
      [
        'a Discord URL with another case in its path',
        { type: 'discord', config: { webhookUrl: 'https://discord.com/API/webhooks/1' } },
        /api/,
      ],
      ['a Slack URL without https', { type: 'slack', config: { webhookUrl: 'http://hooks.slack.com/x' } }, /https/],
      ['a Discord URL elsewhere', { type: 'discord', config: { webhookUrl: 'https://discord.com/other/1' } }, /api\/webhooks/],
      ['a Teams URL without https', { type: 'teams', config: { webhookUrl: 'http://a.webhook.office.com/' } }, /https/],
      ['a URL that is none', { type: 'teams', config: { webhookUrl: 'https://' } }, /URL/],
      ['no URL', { type: 'slack', config: {} }, /webhookUrl/],
      ['a mask as URL', { type: 'slack', config: { webhookUrl: '••••abcd' } }, /masked/],
      ['a field of another type', { type: 'slack', config: { webhookUrl: slackUrl, routingKey: 'a' } }, /routingKey/],
      ['an unknown severity', { type: 'pagerduty', config: { routingKey: 'a', severity: 'fatal' } }, /severity/],
      ['no addresses', { type: 'email', config: { addresses: [] } }, /addresses/],
      ['an address that is none', { type: 'email', config: { addresses: ['a@example.com\r\nBcc: b@example.com'] } }, /addresses/],
      ['an address twice', { type: 'email', config: { addresses: ['a@example.com', 'a@example.com'] } }, /twice/],
      ['a webhook with HTTP in capitals', { type: 'webhook', config: { url: 'HTTP://alerts.example.com/' } }, /https/],
      ['a webhook without https', { type: 'webhook', config: { url: 'http://alerts.example.com/' } }, /https/],
      ['a header of ours', { type: 'webhook', config: { url: 'https://a.example/', headers: { 'webhook-id': 'x' } } }, /webhook-id|header/],
      ['a header that cannot be sent', { type: 'webhook', config: { url: 'https://a.example/', headers: { 'X-A': 'a\nb' } } }, /headers/],
      ['a malformed signing secret', { type: 'webhook', config: { url: 'https://a.example/', secret: 'x' } }, /secret/],
    ])('a channel with %s is refused as INVALID_CONFIG', async (_, body, message) => {
      const answer = await world.request('POST', path, { body: { name: 'Wrong', ...body } });
      expect(answer).toMatchObject({ status: 400, body: { error: 'Bad Request', code: 'INVALID_CONFIG' } });
      expect(answer.body.message).toMatch(message);
    });

    test.each([
      ['no name', { type: 'slack', config: configs.slack }],
      ['no type', { name: 'a', config: configs.slack }],
      ['no config', { name: 'a', type: 'slack' }],
      ['an unknown type', { name: 'a', type: 'sms', config: {} }],
    ])('a channel with %s is refused', async (_, body) => {
      expect((await world.request('POST', path, { body })).status).toBe(400);
    });
  });

  describe('a change', () => {
    test.each(types)('a change of type %s that sends back what was read keeps the stored secrets', async (type) => {
      const before = await create(type);
      const spec = (await stored(before.slug)).spec;
      const { status, body } = await patch(before.id, before);
      expect([status, body.config]).toEqual([200, before.config]);
      expect((await stored(before.slug)).spec).toEqual(spec);
    });

    test('a change of a URL replaces it; of the severity keeps the key', async () => {
      const slack = await create('slack');
      const answer = await patch(slack.id, { config: { webhookUrl: 'https://hooks.slack.com/services/T0/B0/another-wxyz' } });
      expect(answer.body.config).toEqual({ webhookUrl: '••••wxyz' });
      const pagerduty = await create('pagerduty');
      expect((await patch(pagerduty.id, { config: { severity: 'info' } })).body.config).toEqual({
        routingKey: '••••abcd',
        severity: 'info',
      });
    });

    test('a change of the headers replaces the map, and null takes the signing secret away', async () => {
      const { id } = await create('webhook');
      const { body } = await patch(id, { config: { headers: { 'X-Team': 'a' }, secret: null } });
      expect(body.config).toEqual({ url: 'https://alerts.example.com/in', headers: { 'X-Team': '••••' }, secret: null });
    });

    test('a change of the host needs the values of the headers again, unless the caller is admin', async () => {
      const key = await world.addKey('acme', { role: 'developer' });
      const { id, config } = await create('webhook');
      const elsewhere = { ...config, url: 'https://elsewhere.example.com/' };
      expect(await patch(id, { config: elsewhere }, key)).toMatchObject({ status: 400, body: { code: 'CREDENTIALS_REQUIRED' } });
      expect((await patch(id, { config: { ...elsewhere, headers: { Authorization: 'Bearer another' } } }, key)).status).toBe(200);
      expect((await patch(id, { config: { ...elsewhere, url: 'https://third.example.com/' } })).status).toBe(400);
      expect((await patch(id, { config: { url: 'https://third.example.com/' } })).status).toBe(200);
    });

    test('a change of the type is refused, of name and enabled done', async () => {
      const { id } = await create('slack');
      expect((await patch(id, { type: 'email' })).status).toBe(400);
      expect((await patch(id, { type: 'slack' })).status).toBe(200);
      expect((await patch(id, { name: 'Renamed', enabled: false })).body).toMatchObject({ name: 'Renamed', enabled: false });
    });
  });

  test('the list is all channels in one answer, by type and by enabled', async () => {
    const key = await world.addOrganization('lists').then(() => world.addKey('lists'));
    for (let i = 0; i < 22; i++)
      await world.request('POST', path, { key, body: { name: `Slack ${i}`, type: 'slack', config: configs.slack, enabled: i > 0 } });
    await world.request('POST', path, { key, body: { name: 'Mail', type: 'email', config: configs.email } });
    const list = async (query: string) => (await world.request('GET', path + query, { key })).body;
    const all = await list('');
    expect(Object.keys(all)).toEqual(['data']);
    expect(all.data).toHaveLength(23);
    expect(all.data[0]).toEqual({
      id: expect.any(String),
      organizationId: expect.stringMatching(/^org_/),
      isActive: true,
      name: 'Mail',
      slug: 'mail',
      type: 'email',
      enabled: true,
      lastNotifiedAt: null,
    });
    expect((await list('?type=slack')).data).toHaveLength(22);
    expect((await list('?type=slack&enabled=false')).data).toHaveLength(1);
    expect((await list('?type=slack&enabled=true')).data).toHaveLength(21);
    expect((await list('?enabled=true')).data).toHaveLength(22);
    expect((await world.request('GET', `${path}?type=sms`, { key })).status).toBe(400);
  });

  test('a deleted channel is gone with its Secret', async () => {
    const { id, slug } = await create('slack');
    const name = (await stored(slug)).spec.slack?.webhookUrlSecretRef.name ?? '';
    expect((await world.store.getSecret({ namespace: 'acme', name })).data).toBeDefined();
    const { status, text } = await world.request('DELETE', `${path}/${id}`);
    expect([status, text]).toEqual([204, '']);
    expect((await world.request('GET', `${path}/${id}`)).status).toBe(404);
    expect((await world.request('GET', path)).body.data.map((each: { id: string }) => each.id)).not.toContain(id);
  });

  test('no secret of a channel is anywhere in clear', async () => {
    for (const type of types) await create(type);
    const keys = await world.redis.client.keys('*');
    const dump = await Promise.all(keys.map((key) => world.redis.client.dumpBuffer(key)));
    const secrets = (await world.store.list('Secret', { namespace: 'acme' })).items;
    const channels = (await world.store.list('NotificationChannel', { namespace: 'acme' })).items;
    const seen = [Buffer.concat(dump.filter((each) => each !== null)).toString('latin1'), JSON.stringify([secrets, channels])];
    for (const text of [...seen, world.logLines.join('\n')]) {
      expect(text).not.toContain('canary');
      expect(text).not.toContain(secret);
    }
  });
}
