import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { accessibilityViolations, openPage, startBrowser, type WatchedPage } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Standalone, startStandalone } from '../support/program.ts';
import { buildConsole } from './built-console.ts';

let browser: Browser;
let opened: WatchedPage | undefined;
beforeAll(async () => {
  await buildConsole();
  browser = await startBrowser();
});
afterEach(async () => {
  await opened?.close();
  opened = undefined;
});
afterAll(() => browser?.close());

/** Opens the address, and again by the browser's reload; returns once the page has drawn something, with the paths that it has requested. */
async function openTwice(address: string): Promise<{ paths: string[]; page: WatchedPage }> {
  opened = await openPage(browser);
  const { page } = opened;
  const paths: string[] = [];
  page.on('request', (asked) => paths.push(new URL(asked.url()).pathname));
  await page.goto(address);
  await drawn(page);
  await page.reload();
  await drawn(page);
  return { paths, page: opened };
}

/** Until nothing is under way any more would be too long: a stream stays open. */
const drawn = (page: Page): Promise<void> => page.locator('#root', { hasText: /\S/ }).waitFor();

async function expectSound({ page, errors, policyViolations }: WatchedPage): Promise<void> {
  expect(await page.title()).toMatch(/Posthorn/);
  expect({ errors, policyViolations }).toEqual({ errors: [], policyViolations: [] });
}

describe('without a base path', () => {
  let standalone: Standalone;
  beforeAll(async () => {
    standalone = await startStandalone();
  });
  afterAll(() => standalone?.stop());

  test('standalone says where the console is', () => {
    expect(standalone.program.output()).toMatch(new RegExp(`^Console: http://localhost:${standalone.port}/console/$`, 'm'));
  });

  test('a browser that opens / comes to the console, which breaks no rule of its policy and writes no error', async () => {
    const { page } = await openTwice(`${standalone.url}/`);
    expect(new URL(page.page.url()).pathname).toMatch(/^\/console\//);
    await expectSound(page);
  });

  test('what breaks the policy, and what goes wrong, is seen by these tests', async () => {
    const { page } = await openTwice(`${standalone.url}/console/`);
    await page.page.evaluate(`document.head.append(Object.assign(document.createElement('style'), { textContent: 'p { color: red }' }));
      setTimeout(() => { throw new Error('nobody catches this'); });`);
    await eventually(() => expect(page.errors.length).toBeGreaterThan(1));
    expect(page.policyViolations).toEqual([expect.stringMatching(/^style-src-elem inline/)]);
    expect(page.errors.join('\n')).toMatch(/nobody catches this/);
  });

  test('axe finds nothing in the page that a browser comes to, and what is wrong where something is', async () => {
    const { page } = await openTwice(`${standalone.url}/console/`);
    expect(await accessibilityViolations(page.page)).toEqual([]);
    await page.page.evaluate(`document.getElementById('root').append(document.createElement('button'))`);
    expect(await accessibilityViolations(page.page)).toEqual([
      { id: 'button-name', help: expect.any(String), targets: [expect.stringContaining('button')] },
    ]);
  });

  test('a path below the page opens again as it is', async () => {
    const { page } = await openTwice(`${standalone.url}/console/login?next=%2Fevents`);
    expect(page.page.url()).toBe(`${standalone.url}/console/login?next=%2Fevents`);
    await expectSound(page);
  });
});

describe('below a base path', () => {
  let standalone: Standalone;
  beforeAll(async () => {
    standalone = await startStandalone({ environment: { POSTHORN_BASE_PATH: '/posthorn' } });
  });
  afterAll(() => standalone?.stop());

  test('standalone says where the console is', () => {
    expect(standalone.program.output()).toMatch(new RegExp(`^Console: http://localhost:${standalone.port}/posthorn/console/$`, 'm'));
  });

  describe.each(['strips', 'leaves'] as const)('behind a proxy that %s it', (manner) => {
    let proxy: Server;
    let origin: string;
    beforeAll(async () => {
      proxy = proxyBelow('/posthorn', standalone.port, manner).listen(0, '127.0.0.1');
      await once(proxy, 'listening');
      origin = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    });
    afterAll(() => {
      proxy.close();
      proxy.closeAllConnections();
    });

    test.each(['/posthorn/console/', '/posthorn/console/login?next=%2Fevents'])(
      '%s opens, and requests nothing elsewhere',
      async (path) => {
        const { paths, page } = await openTwice(`${origin}${path}`);
        await expectSound(page);
        expect(new URL(page.page.url()).pathname).toMatch(/^\/posthorn\/console\//);
        expect(paths.filter((each) => !each.startsWith('/posthorn/'))).toEqual([]);
        expect(paths.filter((each) => each.startsWith('/posthorn/console/assets/')).length).toBeGreaterThan(1);
      },
    );

    test('the entrance leads to the console', async () => {
      const { page } = await openTwice(`${origin}/posthorn/`);
      expect(new URL(page.page.url()).pathname).toMatch(/^\/posthorn\/console\//);
      await expectSound(page);
    });

    test('assets are kept for ever, the page is not', async () => {
      const answer = await fetch(`${origin}/posthorn/console/events`);
      expect(answer.headers.get('cache-control')).toBe('no-cache');
      const assets = [...(await answer.text()).matchAll(/"(\/posthorn\/console\/assets\/[^"]+)"/g)].map(([, path = '']) => path);
      expect(assets.length).toBeGreaterThan(2);
      for (const path of assets) {
        const { status, headers } = await fetch(`${origin}${path}`);
        expect([path, status, headers.get('cache-control')]).toEqual([path, 200, 'public, max-age=31536000, immutable']);
      }
    });

    test('API, documentation and ingest answer below it', async () => {
      const authorization = `Bearer ${standalone.key}`;
      expect((await fetch(`${origin}/posthorn/api/routes`, { headers: { authorization } })).status).toBe(200);
      const document = JSON.parse(await (await fetch(`${origin}/posthorn/openapi.json`)).text());
      expect(document.servers[0].url).toBe('/posthorn/api');
      const page = await (await fetch(`${origin}/posthorn/docs`)).text();
      const links = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link = '']) => link);
      expect(links.length).toBeGreaterThan(3);
      for (const link of links) expect([link, (await fetch(`${origin}${link}`)).status]).toEqual([link, 200]);
      expect(await (await fetch(`${origin}/posthorn/docs/start.js`)).text()).toContain("url: '/posthorn/openapi.json'");
      const event = await fetch(`${origin}/posthorn/ingest/default/nowhere`, { method: 'POST', body: '{}' });
      expect(await event.json()).toMatchObject({ code: 'NOT_FOUND', message: expect.stringContaining('source') });
    });
  });
});

test('there is no console with POSTHORN_CONSOLE=off', async () => {
  const standalone = await startStandalone({ environment: { POSTHORN_CONSOLE: 'off' } });
  try {
    for (const path of ['/', '/console', '/console/', '/console/events', '/console/licences.txt']) {
      const { status, headers } = await fetch(`${standalone.url}${path}`, { headers: { accept: 'text/html' }, redirect: 'manual' });
      expect([path, status, headers.get('x-error-code')]).toEqual([path, 404, 'NOT_FOUND']);
    }
    expect(standalone.program.output()).not.toContain('Console:');
  } finally {
    await standalone.stop();
  }
});

/** Requests with the path go to the port, without or with it; everything else is 418. */
function proxyBelow(basePath: string, port: number, manner: 'strips' | 'leaves'): Server {
  return createServer((incoming, outgoing) => {
    const { method, headers, url = '' } = incoming;
    if (!url.startsWith(`${basePath}/`)) return void outgoing.writeHead(418).end();
    const path = manner === 'strips' ? url.slice(basePath.length) : url;
    const passed = request({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      if (outgoing.destroyed) return void answer.destroy();
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      pipeline(answer, outgoing, () => undefined);
    });
    passed.on('error', () => outgoing.destroy());
    outgoing.once('close', () => passed.destroy());
    incoming.pipe(passed);
  });
}
