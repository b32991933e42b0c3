import { createContext, runInContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
beforeAll(async () => {
  world = await startFacadeWorld();
});
afterAll(() => world.stop());

const get = (path: string) => world.request('GET', path, { key: null });

test('the documentation page gets all that it needs from this server, and may get nothing from elsewhere', async () => {
  const page = await get('/docs');
  expect(page.status).toBe(200);
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/https?:|\*|unsafe-eval|script-src[^;]*unsafe-inline/);
  const links = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '');
  const types: Record<string, string> = { js: 'javascript', css: 'css', png: 'png' };
  for (const link of links) {
    const { status, headers } = await get(link);
    expect([link, status, headers.get('x-content-type-options')]).toEqual([link, 200, 'nosniff']);
    expect(headers.get('content-type')).toContain(types[link.split('.').at(-1) ?? ''] ?? link);
  }
  expect(links.length).toBeGreaterThanOrEqual(4);
  const start = await get('/docs/start.js');
  expect(start.text).toContain("url: '/openapi.json'");
  expect(start.text).toContain('validatorUrl: null');
});

test('the script of the documentation page makes no code from text, which its policy forbids', async () => {
  const own = [
    'URL',
    'URLSearchParams',
    'TextEncoder',
    'TextDecoder',
    'AbortController',
    'Blob',
    'File',
    'Headers',
    'Request',
    'Response',
    'FormData',
    'ReadableStream',
    'Event',
    'EventTarget',
    'setTimeout',
    'clearTimeout',
    'console',
  ];
  const browser: Record<string, unknown> = Object.fromEntries(own.map((name) => [name, Reflect.get(globalThis, name)]));
  const element = () => ({ style: {}, setAttribute: () => {}, appendChild: () => {} });
  const document = {
    createElement: element,
    createTextNode: element,
    addEventListener: () => {},
    querySelector: () => null,
    documentElement: element(),
    head: element(),
  };
  const location = { href: `${world.baseUrl}/docs`, protocol: 'http:', search: '', hash: '' };
  Object.assign(browser, {
    window: browser,
    self: browser,
    navigator: { userAgent: 'test' },
    location,
    document,
    addEventListener: () => {},
  });
  for (const name of ['Element', 'HTMLElement', 'Node']) browser[name] = class {};
  browser['MutationObserver'] = class {
    observe(): void {}
  };
  runInContext((await get('/docs/swagger-ui-bundle.js')).text, createContext(browser, { codeGeneration: { strings: false, wasm: false } }));
  expect(browser['SwaggerUIBundle']).toEqual(expect.any(Function));
});
