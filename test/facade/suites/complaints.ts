import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { FacadeWorld } from '../facade-world.ts';

/** Refusals name the wrong field in the words of the API, and what to do, with any store behind the API. */
export function describeComplaints(start: () => Promise<FacadeWorld>): void {
  let world: FacadeWorld;

  beforeAll(async () => {
    world = await start();
    await world.request('POST', '/api/sources', { body: { name: 'Shop' } });
    await world.request('POST', '/api/destinations', { body: { name: 'Target', url } });
  });
  afterAll(() => world.stop());

  const url = 'https://hooks.example.com/in';
  const cron = { name: 'Report', cronExpression: '0 6 * * *', url };
  const channel = (type: string, config: object) => ({ name: 'Alerts', type, config });
  const webhook = (config: object) => channel('webhook', { url, ...config });
  const destination = { name: 'Shop', url };
  const route = { name: 'Orders', sourceId: 'shop', destinationIds: ['target'] };
  const headerRule = 'it must be a header name: letters, digits and -';
  const setHere = 'Posthorn, the connection or a browser alone sets it';
  const mask = 'is a masked value, but not that of the stored secret: send the secret itself';

  describe('a body is refused with one complaint for each field', () => {
    test.each<[path: string, body: object, message: string]>([
      ['sources', { name: '' }, 'name must not be empty.'],
      ['sources', { name: 'Shop', slug: '' }, 'slug must not be empty.'],
      ['sources', { name: 'Shop', allowedMethods: [] }, 'allowedMethods must not be empty.'],
      ['sources', { name: 'Shop', rejectInvalidSignatures: true }, 'rejectInvalidSignatures needs a signingSecret when it is true.'],
      ['sources', { name: 'Shop', ipAllowlist: ['10.0.0.0/8', '10.0.0.0/8'] }, 'ipAllowlist[1] is there twice: "10.0.0.0/8"; remove one.'],
      ['sources', { name: 'Shop', signingSecret: '\n' }, 'signingSecret must not be blank.'],
      ['api-keys', { name: 'Key', scopes: 'read' }, 'scopes must be a list, not a string.'],
      ['cron', { ...cron, headers: { 'X A': '1' } }, `headers has the name "X A": ${headerRule}.`],
      ['cron', { ...cron, headers: { '': '1' } }, 'headers has the name "": it must not be empty.'],
      ['cron', { ...cron, headers: { 'X-A': 1 } }, 'headers.X-A must be a string, not a number.'],
      ['cron', { ...cron, headers: '{"X-A":1}' }, 'headers.X-A must be a string, not a number.'],
      ['cron', { ...cron, headers: 'X-A: 1' }, 'headers must be an object, or such an object as JSON text.'],
      ['cron', { ...cron, headers: [] }, 'headers must be an object or a string, not a list.'],
      ['cron', { ...cron, headers: { Host: 'a' } }, `headers must not have "Host": ${setHere}.`],
      ['cron', { ...cron, headers: { a: '1', A: '2' } }, 'headers must name each header once; upper and lower case do not differ.'],
      ['destinations', { ...destination, headers: { 'webhook-id': 'a' } }, `headers must not have "webhook-id": ${setHere}.`],
      [
        'destinations',
        { ...destination, headers: { a: '1', A: '2' } },
        'headers must name each header once; upper and lower case do not differ.',
      ],
      [
        'destinations',
        { ...destination, authType: 'api_key', authConfig: { headerName: 'Host', key: 'k' } },
        'authConfig.headerName is a header that Posthorn, the connection or a browser alone sets: give another one.',
      ],
      ['destinations', { ...destination, authType: 'bearer', authConfig: { token: '••••abcd' } }, `authConfig.token ${mask}.`],
      [
        'destinations',
        { ...destination, authType: 'basic', authConfig: { username: 'a:b', password: 'p' } },
        'authConfig.username must have no colon and no control characters.',
      ],
      ['notification-channels', channel('pagerduty', {}), 'config.routingKey is required.'],
      ['notification-channels', channel('pagerduty', { routingKey: 5 }), 'config.routingKey must be a string, not a number.'],
      ['notification-channels', channel('pagerduty', { routingKey: 'a b' }), 'config.routingKey must be the integration key.'],
      ['notification-channels', channel('slack', { webhookUrl: '' }), 'config.webhookUrl must not be empty.'],
      ['notification-channels', channel('slack', { webhookUrl: '••••abcd' }), `config.webhookUrl ${mask}.`],
      ['notification-channels', channel('email', { addresses: ['x'] }), 'config.addresses[0] must be at least 3 characters long.'],
      ['notification-channels', webhook({ headers: { 'X-A': 5 } }), 'config.headers.X-A must be a string, not a number.'],
      ['notification-channels', webhook({ headers: { 'X A': '5' } }), `config.headers has the name "X A": ${headerRule}.`],
      ['notification-channels', webhook({ headers: { Host: 'a' } }), `config.headers must not have "Host": ${setHere}.`],
      ['notification-channels', webhook({ headers: { 'X-A': '••••abcd' } }), `config.headers.X-A ${mask}.`],
      ['routes', { ...route, sourceId: 'target' }, 'sourceId: there is no source "target".'],
      ['routes', { ...route, destinationIds: ['target', 'shop'] }, 'destinationIds[1]: there is no destination "shop".'],
      ['routes', { ...route, destinationIds: ['target', 'target'] }, 'destinationIds[1] names the destination "target" a second time.'],
      ['routes', { ...route, failoverDestinationIds: ['nothing'] }, 'failoverDestinationIds[0]: there is no destination "nothing".'],
      ['routes', { ...route, filterId: 'nothing' }, 'filterId: there is no filter "nothing".'],
      ['routes', { ...route, transformId: 'nothing' }, 'transformId: there is no transform "nothing".'],
      ['routes', { ...route, schemaId: 'nothing' }, 'schemaId: there is no schema "nothing".'],
      [
        'routes',
        { ...route, notificationChannelIds: ['nothing'] },
        'notificationChannelIds[0]: there is no notification channel "nothing".',
      ],
      [
        'routes',
        { ...route, failoverDestinationIds: ['target'] },
        'failoverDestinationIds must be other destinations than those in destinationIds.',
      ],
      [
        'routes',
        { ...route, filterConditions: [{ field: 'a', operator: 'equals' }] },
        'filterConditions[0].value is required with this operator.',
      ],
    ])('%s %j: %s', async (path, body, message) => {
      const answer = await world.request('POST', `/api/${path}`, { body });
      expect([answer.status, path === 'cron' ? answer.body.error : answer.body.message]).toEqual([400, message]);
    });
  });

  test('a change, and a try, are refused as the creation is', async () => {
    const condition = { field: 'a', operator: 'equals' };
    const good = { conditions: [{ field: 'a', operator: 'exists' }] };
    await world.request('POST', '/api/filters', { body: { name: 'Changing', ...good } });
    await world.request('POST', '/api/routes', { body: { ...route, name: 'Changing' } });
    await world.request('POST', '/api/transforms', { body: { name: 'Changing', code: '1' } });
    const basic = { ...destination, authType: 'basic', authConfig: { username: 'a', password: 'p' } };
    await world.request('POST', '/api/destinations', { body: { ...basic, name: 'Changing' } });
    for (const [method, path, body, message] of [
      ['POST', 'filters', { name: 'New', conditions: [condition] }, 'conditions[0].value is required with this operator.'],
      ['PATCH', 'filters/changing', { conditions: [condition] }, 'conditions[0].value is required with this operator.'],
      ['POST', 'filters/test', { conditions: [condition] }, 'conditions[0].value is required with this operator.'],
      ['PATCH', 'routes/changing', { filterConditions: [condition] }, 'filterConditions[0].value is required with this operator.'],
      ['POST', 'transforms', { name: 'New', code: '(' }, 'code line 1, column 2: Expected ")" before end of expression.'],
      ['PATCH', 'transforms/changing', { code: '(' }, 'code line 1, column 2: Expected ")" before end of expression.'],
      [
        'PATCH',
        'destinations/changing',
        { authConfig: { username: 'a:b' } },
        'authConfig.username must have no colon and no control characters.',
      ],
    ] as const) {
      const answer = await world.request(method, `/api/${path}`, { body });
      expect([method, path, answer.status, answer.body.message]).toEqual([method, path, 400, message]);
    }
  });

  test('what is missing is called by its name', async () => {
    const messageOf = async (path: string) => (await world.request('GET', `/api/${path}/nothing`)).body.message;
    expect(await messageOf('notification-channels')).toBe('There is no notification channel "nothing".');
    expect(await messageOf('schemas')).toBe('There is no schema "nothing".');
    expect((await world.request('GET', '/api/cron/nothing')).body).toEqual({ error: 'There is no cron job "nothing".' });
    const taken = await world.request('POST', '/api/sources', { body: { name: 'Other', slug: 'shop' } });
    expect([taken.status, taken.body.message]).toEqual([409, 'There is already a source with the slug "shop".']);
  });
}
