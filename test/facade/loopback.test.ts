import { once } from 'node:events';
import { type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newApiKey } from '../../src/core/api-key-hash.ts';
import { type Answer, type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let csrfToken: string;
beforeAll(async () => {
  world = await startFacadeWorld({ loopbackOrganization: 'acme' });
  await world.addOrganization('globex');
  csrfToken = (await ask('GET', '/api/sessions/current')).body.csrfToken;
});
afterAll(() => world?.stop());

const ofBrowser = { host: 'localhost:8080', 'sec-fetch-site': 'same-origin' };

async function ask(
  method: string,
  path: string,
  headers: OutgoingHttpHeaders = {},
  body?: object,
): Promise<Pick<Answer, 'status' | 'body'>> {
  const sent = request(`${world.baseUrl}${path}`, {
    method,
    headers: { ...ofBrowser, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    agent: false,
  });
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, body: answer.statusCode === 204 ? null : await json(answer) };
}

test('a browser on the machine is an admin of the organization without a login', async () => {
  const { status, body } = await ask('GET', '/api/sessions/current');
  expect([status, body]).toEqual([
    200,
    {
      id: null,
      how: 'loopback',
      who: 'loopback',
      role: 'admin',
      scopes: ['read', 'write', 'delete'],
      organization: { id: await world.organizationId('acme'), slug: 'acme' },
      expiresAt: null,
      csrfToken: expect.stringMatching(/^[\w-]{43}$/),
    },
  ]);
  expect(world.logLines.some((line) => line.includes('"userName":"loopback"'))).toBe(true);
});

test('a browser on the machine reaches each organization that the path names', async () => {
  expect((await ask('GET', '/api/organizations/globex/sessions/current')).body).toMatchObject({ organization: { slug: 'globex' } });
  expect((await ask('GET', '/api/organizations/nobody/sources')).status).toBe(404);
});

test('what may change something needs the token of the process', async () => {
  const create = (headers: OutgoingHttpHeaders) => ask('POST', '/api/sources', headers, { name: 'By a browser' });
  for (const headers of [{}, { 'x-posthorn-csrf': 'loopback' }, { 'x-posthorn-csrf': `${csrfToken.slice(0, -1)}!` }])
    expect(await create(headers)).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } });
  expect((await create({ 'x-posthorn-csrf': csrfToken })).status).toBe(201);
  const replica = await world.startReplica();
  expect((await replica('GET', '/api/sources', { key: null, headers: { 'sec-fetch-site': 'same-origin' } })).status).toBe(401);
});

test('an API key that is made at the machine has no maker that it ends with', async () => {
  const made = await ask('POST', '/api/api-keys', { 'x-posthorn-csrf': csrfToken }, { name: 'Made at the machine', role: 'admin' });
  expect([made.status, made.body.apiKey.createdBy]).toEqual([201, { name: 'loopback', keyId: null }]);
  expect((await world.request('GET', '/api/sources', { key: made.body.key })).status).toBe(200);
});

test('an admin at the machine ends the sessions of an organization', async () => {
  const { body } = await world.request('POST', '/api/sessions', { key: null, body: { credential: world.admin } });
  expect((await ask('GET', '/api/sessions')).body.data.map(({ id }: { id: string }) => id)).toEqual([body.id]);
  expect((await ask('DELETE', `/api/sessions/${body.id}`, { 'x-posthorn-csrf': csrfToken })).status).toBe(204);
  expect((await ask('DELETE', '/api/sessions/current', { 'x-posthorn-csrf': csrfToken })).status).toBe(404);
});

test.each<[string, () => OutgoingHttpHeaders]>([
  ['a wrong API key', () => ({ authorization: `Bearer ${newApiKey().key}` })],
  ['a wrong API key in x-api-key', () => ({ 'x-api-key': newApiKey().key })],
  ['another kind of credential', () => ({ authorization: 'Basic YTpi' })],
  ['an empty Authorization header', () => ({ authorization: '' })],
  ['the cookie of a session that has ended', () => ({ cookie: 'posthorn_session=ended' })],
  ['a Host that is no loopback name', () => ({ host: 'posthorn.example.com' })],
  ['another site that has it sent', () => ({ 'sec-fetch-site': 'cross-site' })],
  ['a proxy', () => ({ 'x-forwarded-for': '192.0.2.1' })],
  ['the word of standalone, which no client can give', () => ({ host: 'a', 'x-posthorn-from-loopback': '1' })],
])('a request with %s is 401', async (_, headers) => {
  expect((await ask('GET', '/api/sources', headers())).status).toBe(401);
});
