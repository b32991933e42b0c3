import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { type ControlPlaneWorld, startControlPlaneWorld } from '../e2e/control-plane-world.ts';
import { Shop } from '../e2e/manifests.ts';
import { RestClient } from '../e2e/rest.ts';
import { accessibilityViolations, openPage, startBrowser, type WatchedPage } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { buildConsole } from './built-console.ts';

const shop = new Shop('acme');
let world: ControlPlaneWorld;
let browser: Browser;
let opened: WatchedPage | undefined;
let url: string;
beforeAll(async () => {
  [world, browser] = await Promise.all([startControlPlaneWorld(), startBrowser(), buildConsole()]);
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  world.start('controller');
  world.start('api', { port });
  const organization = shop.organization([]);
  await world.apply([organization]);
  await world.waitUntilReady(organization);
  await world.apply([shop.apiKeyManifest, ...shop.secrets, shop.source, shop.route('orders', 'missing')]);
  await world.waitUntilReady(shop.apiKeyManifest);
  await eventually('the api to be ready', 60_000, async () => (await fetch(`${url}/readyz`).catch(() => null))?.ok);
}, 240_000);
afterAll(async () => {
  await opened?.close();
  await browser?.close();
  await world?.stop();
});

test('the page of a resource shows what the controller reports of it to Kubernetes', async () => {
  const rest = new RestClient(url, shop.apiKey);
  let id = '';
  await eventually('an Event of the route', 60_000, async () => {
    id = (await rest.send('GET', '/api/routes/orders')).body.id ?? '';
    const { body } = await rest.send('GET', `/api/manifests/${id}/events`);
    return body.data?.length > 0;
  });
  const { body } = await rest.send('GET', `/api/manifests/${id}/events`);
  const [event] = body.data;
  opened = await openPage(browser);
  const { page } = opened;
  await page.goto(`${url}/console/o/acme/manifests/${id}`);
  await page.getByLabel('API key', { exact: true }).last().fill(shop.apiKey);
  await page.keyboard.press('Enter');
  const panel = page.getByRole('region', { name: 'Events' });
  const row = panel.getByRole('row').filter({ hasText: event.message }).first();
  await row.waitFor();
  const cells = await row.getByRole('cell').allTextContents();
  expect(cells.slice(0, 5)).toEqual([event.type, event.reason, event.message, String(event.count), 'posthorn-controller']);
  expect(event.message).toContain('missing');
  expect(await accessibilityViolations(page)).toEqual([]);
  expect([opened.errors, opened.policyViolations]).toEqual([[], []]);
}, 120_000);
