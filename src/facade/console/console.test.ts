import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingHttpHeaders, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterEach, expect, test } from '@jest/globals';
import { silentLogger } from '../../../test/support/logger.ts';
import { patientServer } from '../../../test/support/patient-server.ts';
import { createConsole } from './console.ts';

const page = `<!doctype html><html><head>
<meta name="posthorn-base" content=""><meta name="posthorn-version" content=""><meta name="posthorn-theme" content="auto"><meta name="posthorn-views" content="[]">
<link rel="icon" href="./assets/mark-1.svg"><script type="module" src="./assets/index-1.js"></script></head></html>`;

const script = '"><script>alert(1)</script>';
const views = [{ name: script, screen: 'deliveries', search: { where: `event.data.name == "${script}" && true` } }];

let directory: string | undefined;
let server: Server | undefined;
let port = 0;
afterEach(async () => {
  server?.close();
  server?.closeAllConnections();
  if (directory !== undefined) rmSync(directory, { recursive: true });
  server = directory = undefined;
});

/** A server with the console, and with 404 `elsewhere` at every other path. */
async function serve({ basePath = '', isBuilt = true } = {}): Promise<void> {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-console-'));
  writeFileSync(join(directory, 'secret.txt'), 'secret');
  if (isBuilt) build(join(directory, 'web'));
  const handle = createConsole(
    { directory: join(directory, 'web'), basePath, theme: 'dark', views, version: '1.2.3' },
    { logger: silentLogger },
  );
  server = patientServer((incoming, outgoing) => void (handle(incoming, outgoing) || outgoing.writeHead(404).end('elsewhere')), {
    basePath,
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
}

function build(web: string): void {
  mkdirSync(join(web, 'assets'), { recursive: true });
  writeFileSync(join(web, 'index.html'), page);
  writeFileSync(join(web, 'licences.txt'), 'MIT');
  writeFileSync(join(web, 'assets/index-1.js'), 'plain');
  writeFileSync(join(web, 'assets/index-1.js.br'), 'by brotli');
  writeFileSync(join(web, 'assets/index-1.js.gz'), 'by gzip');
  writeFileSync(join(web, 'assets/mark-1.svg'), '<svg/>');
}

/** Requests a path as it is written: fetch would resolve its dots. */
async function ask(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const sent = request({ host: '127.0.0.1', port, path, method, headers }).end();
  const [answer] = await once(sent, 'response');
  const body = await buffer(answer);
  return { status: Number(answer.statusCode), headers: answer.headers as IncomingHttpHeaders, body, text: body.toString() };
}

test.each([
  ['br, gzip', 'br', 'by brotli'],
  ['gzip, deflate, br', 'br', 'by brotli'],
  ['gzip, br;q=0', 'gzip', 'by gzip'],
  ['*', 'br', 'by brotli'],
  ['deflate', undefined, 'plain'],
  ['', undefined, 'plain'],
])('an asset is sent to Accept-Encoding: %s as %s, for ever', async (accepted, encoding, text) => {
  await serve();
  const answer = await ask('/console/assets/index-1.js', { 'accept-encoding': accepted });
  expect(answer).toMatchObject({ status: 200, text });
  expect(answer.headers).toMatchObject({
    'cache-control': 'public, max-age=31536000, immutable',
    'content-type': 'text/javascript; charset=utf-8',
    'content-length': String(text.length),
    vary: 'Accept-Encoding',
  });
  expect(answer.headers['content-encoding']).toBe(encoding);
});

test('an asset without a compressed form is sent as it is, with its type', async () => {
  await serve();
  const { headers, text } = await ask('/console/assets/mark-1.svg', { 'accept-encoding': 'br' });
  expect(text).toBe('<svg/>');
  expect(headers['content-type']).toBe('image/svg+xml');
  expect(headers['content-encoding']).toBeUndefined();
});

test.each(['/console', '/console/', '/console/events/evt_1?tab=attempts', '/console/a/assets/b', '/posthorn/console/events'])(
  '%s is answered with the page, which names its assets and what it is told by their whole paths',
  async (path) => {
    await serve({ basePath: '/posthorn' });
    const { status, headers, text } = await ask(path);
    expect(status).toBe(200);
    expect(headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache', vary: 'Accept-Encoding' });
    expect(text).toContain('href="/posthorn/console/assets/mark-1.svg"');
    expect(text).toContain('src="/posthorn/console/assets/index-1.js"');
    expect(text).toContain('<meta name="posthorn-base" content="/posthorn">');
    expect(text).toContain('<meta name="posthorn-version" content="1.2.3">');
    expect(text).toContain('<meta name="posthorn-theme" content="dark">');
  },
);

test('the views of the operator are in an attribute of the page as text, whatever their names are', async () => {
  await serve();
  const { text } = await ask('/console/');
  expect(text).not.toContain('<script>alert');
  const content = /<meta name="posthorn-views" content="([^"]*)"/.exec(text)?.[1] ?? '';
  const plain = content.replace(/&(lt|gt|quot|amp|#39);/g, (_, name: string) => ({ lt: '<', gt: '>', quot: '"', amp: '&' })[name] ?? "'");
  expect(JSON.parse(plain)).toEqual(views);
});

test('the page is sent compressed to those who take that', async () => {
  await serve();
  const plain = await ask('/console/');
  expect(plain.text).toContain('<meta name="posthorn-base" content="">');
  const br = await ask('/console/', { 'accept-encoding': 'br, gzip' });
  expect([br.headers['content-encoding'], brotliDecompressSync(br.body).toString()]).toEqual(['br', plain.text]);
  const gzip = await ask('/console/', { 'accept-encoding': 'gzip' });
  expect([gzip.headers['content-encoding'], gunzipSync(gzip.body).toString()]).toEqual(['gzip', plain.text]);
});

test.each(['/console/', '/console/assets/index-1.js', '/console/assets/missing.js', '/'])(
  '%s has the headers that keep a page to itself',
  async (path) => {
    await serve();
    const { headers } = await ask(path, { accept: 'text/html' });
    expect(headers).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    });
  },
);

test('HEAD is answered as GET, without the body', async () => {
  await serve();
  for (const path of ['/console/', '/console/assets/index-1.js']) {
    const [head, get] = [await ask(path, { 'accept-encoding': 'br' }, 'HEAD'), await ask(path, { 'accept-encoding': 'br' })];
    expect([head.status, head.text]).toEqual([200, '']);
    for (const name of ['content-length', 'content-encoding', 'content-type']) expect(head.headers[name]).toBe(get.headers[name]);
  }
});

test.each(['POST', 'PUT', 'DELETE', 'OPTIONS'])('%s is not allowed', async (method) => {
  await serve();
  for (const path of ['/console/', '/console/assets/index-1.js']) {
    const { status, headers } = await ask(path, {}, method);
    expect([status, headers['allow'], headers['x-error-code']]).toEqual([405, 'GET, HEAD', 'METHOD_NOT_ALLOWED']);
  }
});

test.each([
  '/console/assets/missing.js',
  '/console/assets/',
  '/console/assets/index-1.js.br',
  '/console/assets/../index.html',
  '/console/assets/../../secret.txt',
  '/console/assets/%2e%2e/%2e%2e/secret.txt',
  '/console/assets/..%2f..%2fsecret.txt',
  '/console/assets/..%5c..%5csecret.txt',
  '/console/assets//../../secret.txt',
  '/console/assets/\\..\\..\\secret.txt',
  '/console/assets/index-1.js%00',
])('%s is no asset', async (path) => {
  await serve();
  const { status, headers, text } = await ask(path);
  expect([status, headers['x-error-code']]).toEqual([404, 'NOT_FOUND']);
  expect(text).not.toContain('secret');
});

test.each(['/console/../secret.txt', '/console/%2e%2e/secret.txt', '/console/..%2fsecret.txt', '/console/sources.sha256'])(
  '%s is a path of the page, and no file',
  async (path) => {
    await serve();
    const { status, text } = await ask(path);
    expect([status, text.startsWith('<!doctype html>')]).toEqual([200, true]);
  },
);

test('the licences of what is in the console can be read', async () => {
  await serve();
  const { headers, text } = await ask('/console/licences.txt');
  expect([text, headers['content-type'], headers['cache-control']]).toEqual(['MIT', 'text/plain; charset=utf-8', 'no-cache']);
});

test.each(['/consoles', '/consol', '/api', '/Console/', '//console/'])('%s is not of the console', async (path) => {
  await serve();
  expect(await ask(path)).toMatchObject({ status: 404, text: 'elsewhere' });
});

test.each([
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', true],
  ['text/html', true],
  ['*/*', false],
  ['application/json', false],
  ['application/json, text/html;q=0.5', false],
  ['', false],
])('/ with Accept: %s leads to the console: %s', async (accept, leads) => {
  await serve({ basePath: '/posthorn' });
  for (const path of ['/', '/posthorn', '/posthorn/', '/posthorn?a=b']) {
    const { status, headers } = await ask(path, { accept });
    expect([path, status, headers.location]).toEqual(leads ? [path, 302, '/posthorn/console/'] : [path, 404, undefined]);
  }
  expect(await ask('/', { accept }, 'POST')).toMatchObject({ status: 404, text: 'elsewhere' });
});

test('a console that is not built says how to build it, and is there once it is', async () => {
  await serve({ isBuilt: false });
  const { status, headers, text } = await ask('/console/events');
  expect([status, headers['content-type']]).toEqual([503, 'text/plain; charset=utf-8']);
  expect(text).toContain('node hack/web.ts dist/web');
  expect((await ask('/console/assets/index-1.js')).status).toBe(503);
  build(join(directory ?? '', 'web'));
  expect((await ask('/console/events')).status).toBe(200);
});

test('a build that cannot be read is an error of the server, and no crash', async () => {
  await serve({ isBuilt: false });
  mkdirSync(join(directory ?? '', 'web/index.html'), { recursive: true });
  expect((await ask('/console/')).status).toBe(500);
  expect((await ask('/console/')).status).toBe(500);
});
