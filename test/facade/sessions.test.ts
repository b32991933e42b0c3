import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newApiKey } from '../../src/core/api-key-hash.ts';
import { RedisMessagePurger } from '../../src/data/purge/message-purger.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { eventually } from '../support/eventually.ts';
import { SeenEvents } from '../support/stream-clients.ts';
import { type Answer, type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const [minuteMs, hourMs] = [60_000, 3_600_000];
let world: FacadeWorld;
let aheadMs = 0;
/** The real time, which `jump` moves. */
const clock = {
  ...systemClock,
  now: () => Date.now() + aheadMs,
  jump: (ms: number) => {
    aheadMs += ms;
  },
};
beforeAll(async () => {
  world = await startFacadeWorld({ clock });
  await world.addOrganization('globex');
});
afterAll(() => world?.stop());

interface Browser {
  id: string;
  cookie: string;
  csrfToken: string;
  get(path: string): Promise<Answer>;
  send(method: string, path: string, body?: unknown): Promise<Answer>;
}

const signIn = (credential: string, headers: Record<string, string> = {}, body: object = {}): Promise<Answer> =>
  world.request('POST', '/api/sessions', { key: null, headers, body: { credential, ...body } });

async function logIn(key: string, headers: Record<string, string> = {}): Promise<Browser> {
  const answer = await signIn(key, headers);
  if (answer.status !== 201) throw new Error(answer.text);
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
  const { id, csrfToken } = answer.body;
  return {
    id,
    cookie,
    csrfToken,
    get: (path) => world.request('GET', path, { key: null, headers: { cookie } }),
    send: (method, path, body) => world.request(method, path, { key: null, headers: { cookie, 'x-posthorn-csrf': csrfToken }, body }),
  };
}

const isCleared = ({ headers }: Answer): boolean => /^posthorn_session=; Max-Age=0; /.test(headers.get('set-cookie') ?? '');
const gone = async (browser: Browser): Promise<void> => {
  const answer = await browser.get('/api/sources');
  expect([answer.status, answer.body.message, isCleared(answer)]).toEqual([
    401,
    'The session has ended: log in again, or send an API key.',
    false,
  ]);
};

test('a session begins and continues while Redis is full', async () => {
  const earlier = await logIn(world.admin);
  await world.redis.client.config('SET', 'maxmemory', '1mb');
  try {
    // A session records its last use once a minute.
    clock.jump(2 * minuteMs);
    expect((await earlier.get('/api/sources')).status).toBe(200);
    expect((await (await logIn(world.admin)).get('/api/sources')).status).toBe(200);
  } finally {
    await world.redis.client.config('SET', 'maxmemory', '0');
  }
});

test('a session begins with an API key and reports what the console needs', async () => {
  const key = await world.addKey('acme', { role: 'developer' });
  const answer = await signIn(key, { 'user-agent': 'Browser/1.0' });
  const organization = { id: await world.organizationId('acme'), slug: 'acme' };
  expect([answer.status, answer.body]).toEqual([
    201,
    {
      id: expect.stringMatching(/^ses_[a-z2-7]{26}$/),
      organization,
      role: 'developer',
      who: expect.stringMatching(/^key-/),
      createdAt: expect.any(String),
      expiresAt: new Date(Date.parse(answer.body.createdAt) + 12 * hourMs).toISOString(),
      csrfToken: expect.stringMatching(/^[\w-]{43}$/),
    },
  ]);
  const cookie = answer.headers.get('set-cookie') ?? '';
  expect(cookie).toMatch(/^posthorn_session=sealed\.v1\.[\w.-]+; Max-Age=604800; Path=\/; HttpOnly; SameSite=Strict$/);
  expect(cookie).not.toContain(key);
  const browser = await logIn(key);
  expect((await browser.get('/api/sessions/current')).body).toEqual({
    id: browser.id,
    how: 'session',
    who: answer.body.who,
    role: 'developer',
    scopes: ['read', 'write', 'delete'],
    organization,
    expiresAt: expect.any(String),
    csrfToken: browser.csrfToken,
  });
});

test('what asks with an API key is told that it has no session and needs no CSRF token', async () => {
  const { body } = await world.request('GET', '/api/sessions/current');
  expect(body).toMatchObject({ id: null, how: 'apiKey', role: 'admin', expiresAt: null, csrfToken: null });
});

test.each([
  ['another host', { host: 'posthorn.example.com' }, true],
  ['a loopback name', { host: 'localhost:8080' }, false],
  ['a loopback name for a page that was read by TLS', { host: 'localhost:8080', origin: 'https://posthorn.example.com' }, true],
  ['a loopback name for its own page', { host: 'localhost:8080', origin: 'http://localhost:8080' }, false],
  ['a loopback name behind a proxy that speaks TLS', { host: 'localhost:8080', 'x-forwarded-proto': 'https' }, true],
])('the cookie is Secure by where it is requested: %s', async (_, headers, isSecure) => {
  const sent = request(`${world.baseUrl}/api/sessions`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers } });
  sent.end(JSON.stringify({ credential: world.admin }));
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.resume();
  expect(answer.headers['set-cookie']?.[0]?.endsWith('; Secure')).toBe(isSecure);
});

test('a session is refused for a credential that is none, for another organization and for a page of another site', async () => {
  expect((await signIn(newApiKey().key)).status).toBe(401);
  expect((await signIn(world.admin, {}, { organization: 'globex' })).status).toBe(404);
  expect((await signIn(world.admin, {}, { organization: 'acme' })).status).toBe(201);
  for (const site of ['cross-site', 'same-site']) expect((await signIn(world.admin, { 'sec-fetch-site': site })).status).toBe(403);
  expect((await signIn(world.admin, { 'sec-fetch-site': 'same-origin' })).status).toBe(201);
  const form = await world.request('POST', '/api/sessions', {
    key: null,
    rawBody: JSON.stringify({ credential: world.admin }),
    headers: { 'content-type': 'text/plain' },
  });
  expect([form.status, form.headers.get('set-cookie')]).toEqual([415, null]);
});

test('neither of two cookies is taken, one of which a neighbouring host name may have set', async () => {
  const [own, other] = [await logIn(world.admin), await logIn(world.admin)];
  const ask = (cookie: string) => world.request('GET', '/api/sources', { key: null, headers: { cookie } });
  expect((await ask(`${own.cookie}; ${own.cookie}`)).status).toBe(200);
  for (const cookie of [`${own.cookie}; ${other.cookie}`, `${other.cookie}; ${own.cookie}`]) {
    const answer = await ask(cookie);
    expect(answer.status).toBe(401);
  }
});

test.each(['acme', 'globex'])('a login to %s ends the session of the cookie that the browser sends along, and no other', async (slug) => {
  const [old, other] = [await logIn(world.admin), await logIn(world.admin)];
  const next = await logIn(await world.addKey(slug), { cookie: old.cookie });
  await gone(old);
  expect(await world.redis.client.keys(`test:{sessions:*:${old.id}`)).toEqual([]);
  for (const browser of [next, other]) expect((await browser.get('/api/sources')).status).toBe(200);
});

test('a login that is refused or cannot be stored leaves the session of the browser alive', async () => {
  const browser = await logIn(world.admin);
  expect((await signIn(newApiKey().key, { cookie: browser.cookie })).status).toBe(401);
  const org = await world.organizationId('globex');
  const sessions = `test:{sessions:${org}}`;
  await world.redis.client.rename(sessions, `${sessions}-aside`);
  await world.redis.client.set(sessions, 'not a sorted set');
  expect((await signIn(await world.addKey('globex'), { cookie: browser.cookie })).status).toBe(503);
  await world.redis.client.rename(`${sessions}-aside`, sessions);
  expect((await browser.get('/api/sources')).status).toBe(200);
});

test('a cookie that is none, or one of two, ends no session by a login', async () => {
  const browser = await logIn(world.admin);
  const cookies = ['posthorn_session=x', `${browser.cookie}; posthorn_session=x`];
  for (const cookie of cookies) expect((await signIn(world.admin, { cookie })).status).toBe(201);
  expect((await browser.get('/api/sources')).status).toBe(200);
});

test('a session has the rights of its key, in its organization and in no other', async () => {
  const browser = await logIn(await world.addKey('acme', { role: 'viewer' }));
  expect((await browser.get('/api/sources')).status).toBe(200);
  expect((await browser.get('/api/organizations/acme/sources')).status).toBe(200);
  expect((await browser.get('/api/organizations/globex/sources')).status).toBe(404);
  expect((await browser.send('POST', '/api/sources', { name: 'Of a viewer' })).status).toBe(403);
});

test('what may change something needs the CSRF token of its own session', async () => {
  const [browser, other] = [await logIn(world.admin), await logIn(world.admin)];
  const create = (headers: Record<string, string>) =>
    world.request('POST', '/api/sources', { key: null, headers: { cookie: browser.cookie, ...headers }, body: { name: 'By a browser' } });
  for (const headers of [{}, { 'x-posthorn-csrf': other.csrfToken }, { 'x-posthorn-csrf': '' }] as Record<string, string>[]) {
    const answer = await create(headers);
    expect([answer.status, answer.headers.get('x-error-code')]).toEqual([403, 'FORBIDDEN']);
    expect(answer.body.message).toContain('X-Posthorn-CSRF');
  }
  expect((await create({ 'x-posthorn-csrf': browser.csrfToken })).status).toBe(201);
});

test('an Authorization header wins over the cookie, and needs no CSRF token', async () => {
  const browser = await logIn(await world.addKey('globex'));
  const with_ = (headers: Record<string, string>) =>
    world.request('GET', '/api/sessions/current', { key: null, headers: { cookie: browser.cookie, ...headers } });
  expect((await with_({ authorization: `Bearer ${world.admin}` })).body).toMatchObject({ how: 'apiKey', organization: { slug: 'acme' } });
  expect((await with_({ 'x-api-key': world.admin })).body).toMatchObject({ how: 'apiKey', organization: { slug: 'acme' } });
  expect((await with_({ authorization: `Bearer ${newApiKey().key}` })).status).toBe(401);
});

test.each([
  ['is none', () => 'x'],
  ['is empty', () => ''],
  ['is changed', (value: string) => `${value.slice(0, -2)}${value.endsWith('AA') ? 'BB' : 'AA'}`],
])('a cookie that %s is 401, and cleared only by who logs out', async (_, change) => {
  const browser = await logIn(world.admin);
  const value = browser.cookie.slice('posthorn_session='.length);
  const answer = await world.request('GET', '/api/sources', { key: null, headers: { cookie: `a=b; posthorn_session=${change(value)}` } });
  expect([answer.status, answer.headers.get('set-cookie')]).toEqual([401, null]);
  const cookie = `posthorn_session=${change(value)}`;
  const out = await world.request('DELETE', '/api/sessions/current', { key: null, headers: { cookie } });
  expect([out.status, isCleared(out)]).toEqual([401, true]);
  const among = await world.request('GET', '/api/sources', { key: null, headers: { cookie: `a=b; ${browser.cookie}; c=d` } });
  expect(among.status).toBe(200);
});

test('a session ends 12 hours after its last request, and after 7 days at the latest', async () => {
  const idle = await logIn(world.admin);
  const used = await logIn(world.admin);
  for (let hours = 0; hours < 7 * 24; hours += 6) {
    expect((await used.get('/api/sources')).status).toBe(200);
    await eventually(async () => {
      const { body } = await world.request('GET', '/api/sessions?limit=100');
      const { lastSeenAt } = body.data.find(({ id }: { id: string }) => id === used.id);
      expect(clock.now() - Date.parse(lastSeenAt)).toBeLessThan(minuteMs);
    });
    if (hours === 6) expect((await idle.get('/api/sources')).status).toBe(200);
    if (hours === 24) await gone(idle);
    clock.jump(6 * hourMs);
  }
  await gone(used);
});

test('a session ends with its key: when that is deleted, and when its time is over', async () => {
  const made = await world.request('POST', '/api/api-keys', { body: { name: 'To be deleted' } });
  const browser = await logIn(made.body.key);
  expect((await browser.get('/api/sources')).status).toBe(200);
  expect((await world.request('DELETE', `/api/api-keys/${made.body.apiKey.id}`)).status).toBe(204);
  await gone(browser);
  const { body } = await world.request('GET', '/api/sessions?limit=100');
  expect(body.data.map(({ id }: { id: string }) => id)).not.toContain(browser.id);

  const expiresAt = new Date(clock.now() + hourMs).toISOString();
  const short = await logIn(await world.addKey('acme', { expiresAt }));
  expect((await short.get('/api/sessions/current')).body.expiresAt).toBe(expiresAt);
  clock.jump(hourMs + 1);
  await gone(short);
});

test('a live stream of a session ends when the session does', async () => {
  const browser = await logIn(world.admin);
  const sent = request(`${world.baseUrl}/api/stream`, { headers: { cookie: browser.cookie }, agent: false }).end();
  sent.on('error', () => {});
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  expect(answer.statusCode).toBe(200);
  const seen = new SeenEvents();
  answer
    .setEncoding('utf8')
    .on('data', (text: string) => seen.add(text))
    .on('error', () => {});
  expect((await browser.send('DELETE', '/api/sessions/current')).status).toBe(204);
  await eventually(async () => {
    clock.jump(minuteMs);
    expect(seen.types()).toContain('revoked');
  });
  sent.destroy();
});

test('an admin sees and ends the sessions of the organization, others those of their own key', async () => {
  const keys = await Promise.all([
    world.addKey('acme', { role: 'viewer' }),
    world.addKey('acme', { role: 'viewer' }),
    world.addKey('globex'),
  ]);
  const [one, other, foreign] = (await Promise.all(keys.map((key) => logIn(key, { 'user-agent': 'x'.repeat(300) })))) as [
    Browser,
    Browser,
    Browser,
  ];
  const idsFor = async ({ get }: Browser): Promise<string[]> =>
    (await get('/api/sessions?limit=100')).body.data.map(({ id }: { id: string }) => id);
  const { body } = await one.get('/api/sessions');
  expect(body.data).toEqual([
    {
      id: one.id,
      organizationId: await world.organizationId('acme'),
      who: expect.stringMatching(/^key-/),
      isCurrent: true,
      createdAt: expect.any(String),
      lastSeenAt: expect.any(String),
      expiresAt: expect.any(String),
      address: expect.stringContaining('127.0.0.1'),
      userAgent: 'x'.repeat(200),
    },
  ]);
  const admin = await logIn(world.admin);
  expect(await idsFor(admin)).toEqual(expect.arrayContaining([one.id, other.id, admin.id]));
  expect(await idsFor(admin)).not.toContain(foreign.id);
  expect((await one.send('DELETE', `/api/sessions/${other.id}`)).status).toBe(404);
  expect((await admin.send('DELETE', `/api/sessions/${foreign.id}`)).status).toBe(404);
  expect((await admin.send('DELETE', `/api/sessions/${other.id}`)).status).toBe(204);
  await gone(other);
  const out = await one.send('DELETE', `/api/sessions/${one.id}`);
  expect([out.status, isCleared(out)]).toEqual([204, true]);
  await gone(one);
  expect((await foreign.get('/api/sources')).status).toBe(200);
  expect((await world.request('DELETE', '/api/sessions/current')).status).toBe(404);
});

test('sessions are listed page by page, the newest first', async () => {
  await world.addOrganization('pages');
  const key = await world.addKey('pages');
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) {
    clock.jump(1000);
    ids.unshift((await logIn(key)).id);
  }
  const found: string[][] = [];
  for (let cursor = ''; ; ) {
    const { body } = await world.request('GET', `/api/sessions?limit=2${cursor}`, { key });
    found.push(body.data.map(({ id }: { id: string }) => id));
    if (!body.pagination.hasMore) break;
    cursor = `&cursor=${body.pagination.nextCursor}`;
  }
  expect(found).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]);
});

test('the 201st session of an organization ends, of the credential that has the most, the one that was seen longest ago', async () => {
  await world.addOrganization('many');
  const colleague = await logIn(await world.addKey('many'));
  const key = await world.addKey('many', { role: 'viewer' });
  const [first, second] = [await logIn(key), await logIn(key)];
  clock.jump(2 * minuteMs);
  expect((await first.get('/api/sources')).status).toBe(200);
  await eventually(async () => {
    const { body } = await world.request('GET', '/api/sessions', { key });
    const { lastSeenAt, createdAt } = body.data.find(({ id }: { id: string }) => id === first.id);
    expect(lastSeenAt > createdAt).toBe(true);
  });
  const foreign = await logIn(await world.addKey('globex'));
  for (let i = 0; i < 197; i++) await logIn(key);
  const stored = () => world.redis.client.keys(`test:{sessions:*:${second.id}`);
  expect(await stored()).toHaveLength(1);
  await logIn(key);
  expect(await stored()).toHaveLength(0);
  await gone(second);
  for (const browser of [first, foreign, colleague]) expect((await browser.get('/api/sources')).status).toBe(200);
});

test('neither the log nor Redis has a credential or the secret of a session, and a purge leaves nothing of it', async () => {
  await world.addOrganization('purged');
  const key = await world.addKey('purged');
  const browser = await logIn(key);
  expect((await browser.get('/api/sources')).status).toBe(200);
  const org = await world.organizationId('purged');
  const { client } = world.redis;
  const keys = await client.keys(`test:{sessions:${org}}*`);
  expect(keys.sort()).toEqual([`test:{sessions:${org}}`, `test:{sessions:${org}}:${browser.id}`]);
  expect(await client.pttl(keys[1] ?? '')).toBeGreaterThan(11 * hourMs);
  const stored = JSON.stringify(await client.hgetall(keys[1] ?? '')) + world.logLines.join('');
  for (const secret of [key, browser.cookie, browser.csrfToken]) expect(stored).not.toContain(secret);
  expect(world.logLines.some((line) => line.includes(`"sessionId":"${browser.id}"`))).toBe(true);
  await new RedisMessagePurger({ redis: client, prefix: 'test:' }).purgeOrganization(org, new AbortController().signal);
  expect(await client.keys(`test:{sessions:${org}}*`)).toEqual([]);
});

test('where there are no sessions nobody logs in, no cookie is a credential, and the description knows neither', async () => {
  const browser = await logIn(world.admin);
  const without = await world.startReplica({ takesSessions: false });
  const headers = { cookie: browser.cookie, 'x-posthorn-csrf': browser.csrfToken };
  const answers = await Promise.all([
    without('POST', '/api/sessions', { key: null, body: { credential: world.admin } }),
    without('GET', '/api/sources', { key: null, headers }),
    without('GET', '/api/sources', { headers }),
    without('POST', '/api/sessions', { body: { credential: world.admin } }),
    without('GET', '/api/sessions/current'),
    without('DELETE', `/api/sessions/${browser.id}`),
  ]);
  expect(answers.map(({ status, headers: sent }) => [status, sent.get('set-cookie')])).toEqual(
    [401, 401, 200, 404, 404, 404].map((status) => [status, null]),
  );
  const { body } = await without('GET', '/openapi.json');
  expect(Object.keys(body.paths).filter((path) => path.startsWith('/sessions'))).toEqual([]);
  expect(JSON.stringify([body.security, body.components.securitySchemes])).not.toContain('session');
});

test('a client that guesses credentials in the body is held up as one that guesses keys', async () => {
  const guesses = await Promise.all(Array.from({ length: 120 }, () => signIn(newApiKey().key)));
  expect(guesses.filter(({ status }) => status === 429).length).toBeGreaterThan(40);
  expect((await signIn(world.admin)).status).toBe(201);
});
