import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Browser, Locator } from 'playwright-core';
import { RestClient } from '../e2e/rest.ts';
import { accessibilityViolations, openPage, startBrowser, type WatchedPage } from '../support/browser.ts';
import { type Standalone, startStandalone } from '../support/program.ts';
import { buildConsole } from './built-console.ts';

const script = '<img src=x onerror="document.title=\'taken\'"><script>document.title="taken"</script>';

let browser: Browser;
let standalone: Standalone;
let rest: RestClient;
let opened: WatchedPage;

beforeAll(async () => {
  await buildConsole();
  browser = await startBrowser();
  standalone = await startStandalone({ environment: { POSTHORN_HOST: '127.0.0.1' } });
  rest = new RestClient(standalone.url, standalone.key);
}, 240_000);
afterEach(() => opened?.close());
afterAll(async () => {
  await browser?.close();
  await standalone?.stop();
});

test('the Lab tries a filter and a transform on events that came in, saves them, and shows what others wrote as text', async () => {
  opened = await openPage(browser);
  const { page } = opened;
  await page.goto(`${standalone.url}/console/o/default/lab`);
  await page.getByRole('heading', { name: 'No event yet' }).waitFor();
  await page.getByRole('region', { name: 'Command' }).waitFor();

  const { body: source } = await rest.send('POST', '/api/sources', { name: 'shop' });
  expect(source.slug).toBe('shop');
  const send = async (payload: string): Promise<void> => {
    const response = await fetch(`${standalone.url}/ingest/default/shop`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: payload,
    });
    expect(response.ok).toBe(true);
  };
  await send('{"total":1500,"order":12345678901234567890}');
  await send(JSON.stringify({ total: 20, note: script }));
  await send(JSON.stringify({ filler: 'x'.repeat(300_000) }));

  // The first look at an event is refused, and made again when the API says.
  let refused = 0;
  await page.route('**/filters/test', async (route) => {
    refused += 1;
    if (refused > 1) return await route.continue();
    await route.fulfill({ status: 429, headers: { 'retry-after': '1' }, body: '{"error":"too many"}' });
  });
  await page.goto(`${standalone.url}/console/o/default/lab?source=shop`);
  const text = page.getByLabel('Logic and conditions, as JSON');
  await text.fill('{"logic":"AND","conditions":[{"field":"payload.total","operator":"gt","value":1000}]}');
  await text.press('Control+Enter');
  const results = page.getByRole('region', { name: 'Results' });
  await results.getByText('1 passes, 1 held back, 0 failed, 1 skipped', { exact: true }).waitFor();
  expect(refused).toBe(3);
  const row = (word: string): Locator => results.getByRole('row').filter({ hasText: word });
  await row('Held back').getByText('payload.total gt 1000 is not met').waitFor();
  await row('Skipped').getByText('Its payload has 300 KB.').waitFor();
  await row('Passes').getByRole('link', { name: /^evt_/ }).waitFor();
  await page.getByLabel('Name').fill('Large orders');
  await page.getByRole('button', { name: 'Save as new' }).click();
  await page.waitForURL('**id=flt_**');
  const { body: filter } = await rest.send('GET', '/api/filters/large-orders');
  expect(filter).toMatchObject({ logic: 'AND', conditions: [{ field: 'payload.total', operator: 'gt', value: 1000 }] });

  await rest.send('POST', '/api/transforms', { name: 'to chat', code: '{"text": "hello"}' });
  await page.goto(`${standalone.url}/console/o/default/lab?kind=transform&id=to-chat&events=10`);
  const code = page.getByLabel('Code');
  await code.fill('{ "order": payload.order, "note": payload.note }');
  await page.getByRole('button', { name: 'Run' }).click();
  await results.getByText('2 transformed, 0 not delivered, 0 failed, 1 skipped', { exact: true }).waitFor();
  const diff = results.getByRole('table', { name: /^Output for evt_/ });
  await diff.getByText('onerror').first().waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await results.getByRole('button', { name: 'Show the output' }).click();
  // The line is the same on both sides, with all digits.
  await diff.locator('tr.same').getByText('"order": 12345678901234567890').waitFor();
  await page.getByRole('button', { name: 'Save to chat' }).click();
  await page.getByText('Saved.').waitFor();
  const { body: transform } = await rest.send('GET', '/api/transforms/to-chat');
  expect(transform.code).toBe('{ "order": payload.order, "note": payload.note }');

  await page.goto(`${standalone.url}/console/o/default/lab?kind=schema&events=10`);
  await page.getByLabel('JSON Schema').fill('{"required":["total"]}');
  await page.getByLabel('Name').fill('Order');
  await page.getByRole('button', { name: 'Save as new' }).click();
  await page.waitForURL('**id=sch_**');
  await page.getByRole('button', { name: 'Run' }).click();
  await results.getByText('2 valid, 0 invalid, 0 failed, 1 skipped', { exact: true }).waitFor();

  expect(await page.title()).not.toContain('taken');
  expect(await page.locator('main img').count()).toBe(0);
  expect({ errors: opened.errors, policyViolations: opened.policyViolations }).toEqual({ errors: [], policyViolations: [] });
}, 180_000);
