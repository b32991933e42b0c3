import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { RestClient } from '../e2e/rest.ts';
import { accessibilityViolations, openPage, startBrowser, type WatchedPage } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Standalone, startStandalone } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { buildConsole } from './built-console.ts';

const hostile = '<img src=x onerror="document.title=\'taken\'">';

let browser: Browser;
let standalone: Standalone;
let rest: RestClient;
let receiver: Receiver;
let opened: WatchedPage;

beforeAll(async () => {
  await buildConsole();
  browser = await startBrowser();
  standalone = await startStandalone({ environment: { POSTHORN_HOST: '127.0.0.1' } });
  rest = new RestClient(standalone.url, standalone.key);
  receiver = await startReceiver();
}, 240_000);
afterEach(async () => {
  await opened?.close();
});
afterAll(async () => {
  await browser?.close();
  await standalone?.stop();
  await receiver?.close();
});

async function open(path: string, options: Parameters<typeof openPage>[1] = {}): Promise<Page> {
  opened = await openPage(browser, options);
  await opened.page.goto(`${standalone.url}/console/o/default/${path}`);
  return opened.page;
}

function expectSound(): void {
  expect({ errors: opened.errors, policyViolations: opened.policyViolations }).toEqual({ errors: [], policyViolations: [] });
}

test('a person makes a source, a destination and a route by forms, and an event goes through them', async () => {
  const page = await open('sources');
  await page.getByRole('link', { name: 'New source' }).click();
  await page.getByRole('button', { name: 'Create source' }).click();
  await page.getByText('This is required.').waitFor();
  expect(await page.getByLabel('Name *').getAttribute('aria-invalid')).toBe('true');
  await page.getByLabel('Name *').fill(hostile);
  await page.getByText('Further settings').click();
  await page.getByLabel('Slug').fill('Not A Slug');
  await page.getByRole('button', { name: 'Create source' }).click();
  // The API's own words, at the field.
  await page.locator('.error', { hasText: 'slug' }).waitFor();
  expect(await page.evaluate('document.activeElement === document.querySelector("[aria-invalid=true]")')).toBe(true);
  expect(await page.getByLabel('Slug').getAttribute('aria-invalid')).toBe('true');
  await page.getByLabel('Slug').fill('shop');
  await page.getByRole('button', { name: 'Create source' }).click();
  await page.waitForURL('**/sources?at=*');
  await page.getByRole('complementary').getByText(hostile).waitFor();
  await page.getByText('/ingest/default/shop').first().waitFor();

  await page.goto(`${standalone.url}/console/o/default/targets`);
  await page.getByRole('link', { name: 'New destination' }).click();
  await page.getByLabel('Name *').fill('billing');
  await page.getByLabel('URL').fill(receiver.url);
  await page.getByRole('button', { name: 'Create destination' }).click();
  await page.waitForURL('**/targets?at=*');

  await page.goto(`${standalone.url}/console/o/default/routes/new`);
  await page.getByLabel('Name *').fill('orders');
  const source = page.getByLabel('Source *');
  await source.locator('option', { hasText: hostile }).waitFor({ state: 'attached' });
  await source.selectOption({ index: 1 });
  const destinations = page.getByLabel('Add to destinations', { exact: true });
  await destinations.locator('option', { hasText: 'billing' }).waitFor({ state: 'attached' });
  await destinations.selectOption({ index: 1 });
  await page.getByRole('group', { name: 'Destinations' }).getByRole('button', { name: 'Add' }).click();
  await page.getByRole('button', { name: 'Create route' }).click();
  await page.waitForURL('**/routes?at=*');

  const accepted = await fetch(`${standalone.url}/ingest/default/shop`, { method: 'POST', body: '{"total":1}' });
  expect(accepted.ok).toBe(true);
  await eventually('the delivery', 30_000, async () => (await rest.send('GET', '/api/deliveries?status=delivered')).body.data.length === 1);

  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel('Name *').fill('all orders');
  await page.getByRole('button', { name: 'JSON' }).click();
  expect(JSON.parse(await page.getByLabel('Body of the request').inputValue())).toEqual({ name: 'all orders' });
  await page.getByRole('link', { name: 'Sources' }).click();
  await page.getByRole('dialog', { name: 'Leave without saving?' }).getByRole('button', { name: 'Stay' }).click();
  await page.getByLabel('Body of the request').fill('{"name": ');
  await page.getByText(/JSON/, { exact: false }).last().waitFor();
  expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true);
  await page.getByLabel('Body of the request').fill('{"name": "paid orders"}');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.waitForURL('**/routes?at=*');
  await page.getByRole('complementary').getByText('paid orders').waitFor();
  expect(await page.title()).not.toBe('taken');
  expectSound();
}, 180_000);

test('a form has no accessibility violation in light and dark, and fits 320 pixels', async () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await open('destinations/new', { colorScheme, viewport: { width: 320, height: 700 } });
    await page.getByLabel('Name *').waitFor();
    await page.getByText('Further settings').click();
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320);
    expectSound();
    if (colorScheme === 'light') await opened.close();
  }
}, 120_000);
