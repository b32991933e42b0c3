import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from '@jest/globals';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';

let directory: string;
let program: Program;
let port: number;
afterEach(async () => {
  await program?.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function start(environment: Record<string, string>): Promise<void> {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-e2e-'));
  port = await freePort();
  program = startProgram(['standalone'], { POSTHORN_PORT: String(port), POSTHORN_DATA_DIR: join(directory, 'data'), ...environment });
  await program.waitForOutput(/^posthorn ready /m, 60_000);
}

async function ask(method: string, path: string, headers: OutgoingHttpHeaders = {}, body?: object): Promise<[number | undefined, unknown]> {
  const of = {
    host: `localhost:${port}`,
    'sec-fetch-site': 'same-origin',
    ...(body !== undefined && { 'content-type': 'application/json' }),
  };
  const sent = request({ hostname: '127.0.0.1', port, method, path, headers: { ...of, ...headers }, agent: false });
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return [answer.statusCode, await json(answer)];
}

const statusOf = async (headers: OutgoingHttpHeaders): Promise<number | undefined> => (await ask('GET', '/api/sources', headers))[0];

describe.each(['on one port', 'with ingest on a port of its own'])('standalone on a loopback address, %s', (way) => {
  test('a browser on the machine needs no credentials, and what a proxy or another site sends does', async () => {
    const ingest: Record<string, string> = way === 'on one port' ? {} : { POSTHORN_INGEST_PORT: String(await freePort()) };
    await start({ POSTHORN_HOST: '127.0.0.1', ...ingest });
    const [status, current] = await ask('GET', '/api/sessions/current');
    expect([status, current]).toMatchObject([200, { how: 'loopback', role: 'admin', organization: { slug: 'default' } }]);
    const { csrfToken } = current as { csrfToken: string };
    expect((await ask('POST', '/api/sources', {}, { name: 'Shop' }))[0]).toBe(403);
    expect((await ask('POST', '/api/sources', { 'x-posthorn-csrf': csrfToken }, { name: 'Shop' }))[0]).toBe(201);
    expect(await statusOf({})).toBe(200);
    for (const headers of [
      { host: 'posthorn.example.com' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': '' },
      { 'x-forwarded-for': '127.0.0.1' },
      { via: '1.1 proxy' },
      { host: 'posthorn.example.com', 'x-posthorn-from-loopback': '1' },
      { authorization: 'Bearer ph_wrong' },
    ])
      expect([headers, await statusOf(headers)]).toEqual([headers, 401]);
  });
});

test('what a tenant has the relay itself send to its own API needs credentials', async () => {
  await start({ POSTHORN_HOST: '127.0.0.1' });
  const { csrfToken } = (await ask('GET', '/api/sessions/current'))[1] as { csrfToken: string };
  const own = { 'x-posthorn-csrf': csrfToken };
  const url = `http://127.0.0.1:${port}/api/organizations/default/destinations/export?includeSensitive=true`;
  const job = { name: 'Reader', cronExpression: '0 0 1 1 *', url, method: 'GET' };
  const asBrowser = { ...job, headers: { 'Sec-Fetch-Site': 'none' } };
  expect(await ask('POST', '/api/cron', own, asBrowser)).toMatchObject([
    400,
    { error: expect.stringContaining('a browser alone sets it') },
  ]);
  const [status, made] = await ask('POST', '/api/cron', own, job);
  expect([status, made]).toMatchObject([201, {}]);
  const { id } = (made as { cronJob: { id: string } }).cronJob;
  const [, triggered] = await ask('POST', `/api/cron/${id}/trigger`, own);
  expect(triggered).toMatchObject({ execution: { status: 'failed', responseStatus: 401 } });
});

test.each<[string, Record<string, string>]>([
  ['that listens on all addresses', {}],
  ['whose console is off', { POSTHORN_HOST: '127.0.0.1', POSTHORN_CONSOLE: 'off' }],
])('standalone %s needs credentials of everybody', async (_, environment) => {
  await start(environment);
  expect(await statusOf({})).toBe(401);
});

test('standalone whose console is off has no sessions', async () => {
  await start({ POSTHORN_HOST: '127.0.0.1', POSTHORN_CONSOLE: 'off' });
  const credential = /^posthorn ready .* key (\S+)/m.exec(program.output())?.[1];
  const key = { authorization: `Bearer ${credential}` };
  expect(await statusOf(key)).toBe(200);
  expect((await ask('POST', '/api/sessions', {}, { credential }))[0]).toBe(401);
  expect(await ask('POST', '/api/sessions', key, { credential })).toMatchObject([404, { code: 'NOT_FOUND' }]);
});
