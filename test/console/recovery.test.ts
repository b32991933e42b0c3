import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { RestClient } from '../e2e/rest.ts';
import { openPage, startBrowser, type WatchedPage } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { startStandalone } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { startRedis } from '../support/redis.ts';
import { buildConsole } from './built-console.ts';

let browser: Browser;
let opened: WatchedPage | undefined;
beforeAll(async () => {
  await buildConsole();
  browser = await startBrowser();
}, 240_000);
afterEach(async () => {
  await opened?.close();
  opened = undefined;
});
afterAll(() => browser?.close());

describe('while the API is down the console reports it, and recovers by itself,', () => {
  const part = '**/assets/deliveries-*.js';
  // The parts are read one after the other; this is the last.
  const whenRead = (page: Page): Promise<void> =>
    eventually(async () => {
      const files = "performance.getEntriesByType('resource').map(({ name }) => name)";
      expect(await page.evaluate(files)).toContainEqual(expect.stringContaining('/assets/any-id-'));
    });
  const cases: [title: string, before: (page: Page) => Promise<unknown>, isReady: (page: Page) => Promise<void>][] = [
    ['on a screen that has been read ahead', async () => undefined, whenRead],
    ['on a screen that is yet to be read', (page) => page.route(part, (route) => route.abort()), async () => undefined],
  ];
  test.each(cases)(
    '%s',
    async (_title, before, isReady) => {
      const directory = mkdtempSync(join(tmpdir(), 'posthorn-console-'));
      const environment = { POSTHORN_HOST: '127.0.0.1', POSTHORN_DATA_DIR: directory };
      const first = await startStandalone({ environment });
      opened = await openPage(browser);
      const { page } = opened;
      await before(page);
      await page.goto(`${first.url}/console/o/default/events`);
      await page.getByText('No event yet').waitFor();
      await isReady(page);
      await first.stop();
      await page.getByRole('link', { name: 'Deliveries' }).click();
      await page.getByText('The API does not answer.').first().waitFor({ timeout: 60_000 });
      await page.unroute(part);
      const again = await startStandalone({ environment: { ...environment, POSTHORN_PORT: String(first.port) } });
      await page.getByText('No delivery yet').waitFor({ timeout: 60_000 });
      await again.stop();
      rmSync(directory, { recursive: true, force: true });
    },
    240_000,
  );
});

test('while Redis is down the console reports it, and recovers by itself', async () => {
  const redis = await startRedis(['--appendonly', 'yes']);
  const standalone = await startStandalone({ environment: { POSTHORN_HOST: '127.0.0.1', POSTHORN_REDIS_URL: redis.url } });
  try {
    opened = await openPage(browser);
    const { page } = opened;
    await page.goto(`${standalone.url}/console/o/default/events`);
    await page.getByText('No event yet').waitFor();
    await redis.kill('SIGKILL');
    await page.getByRole('link', { name: 'Deliveries' }).click();
    await page.getByRole('alert').first().waitFor();
    await redis.start();
    await page.getByText('No delivery yet').waitFor();
    await page.getByRole('alert').first().waitFor({ state: 'detached' });
  } finally {
    await standalone.stop();
    await redis.stop();
  }
}, 240_000);

test('a circuit opens, counts down to its probe, and closes before the eyes of the reader', async () => {
  let isDown = true;
  const receiver = await startReceiver((response) => {
    response.statusCode = isDown ? 503 : 200;
    response.end();
  });
  const standalone = await startStandalone({ environment: { POSTHORN_HOST: '127.0.0.1' } });
  try {
    const rest = new RestClient(standalone.url, standalone.key);
    const made = async (path: string, body: object) => {
      const answer = await rest.send('POST', `/api/${path}`, body);
      expect([path, answer.status]).toEqual([path, 201]);
      return answer.body.id as string;
    };
    await made('sources', { name: 'shop' });
    const retryPolicy = { maxRetries: 20, initialDelay: 1000, maxDelay: 2000, backoffMultiplier: 1 };
    const destination = await made('destinations', { name: 'billing', url: receiver.url, retryPolicy });
    const circuit = { circuitFailureThreshold: 1, circuitCooldownSeconds: 20, circuitProbeSuccessThreshold: 1 };
    await made('routes', { name: 'orders', sourceId: 'shop', destinationIds: ['billing'], ...circuit });
    await fetch(`${standalone.url}/ingest/default/shop`, { method: 'POST', body: '{}' });
    opened = await openPage(browser);
    const { page } = opened;
    await page.goto(`${standalone.url}/console/o/default/targets/${destination}`);
    await page.evaluate('window.sameDocument = true');
    const region = page.getByRole('region', { name: 'Circuit of the route orders' });
    await region.waitFor();
    const dial = region.getByRole('img', { name: /^[1-9]\d* of 20 seconds until the next probe$/ });
    const first = await eventually('a countdown', 60_000, async () => (await dial.getAttribute('aria-label')) ?? undefined);
    await eventually(async () => expect(await dial.getAttribute('aria-label', { timeout: 1000 })).not.toBe(first), 60_000);
    isDown = false;
    await region.waitFor({ state: 'detached', timeout: 120_000 });
    expect(await page.evaluate('window.sameDocument')).toBe(true);
    // What has closed again is seen in the series.
    await page.getByText('opened once').waitFor();
    await page.getByRole('img', { name: '1 circuit opened in the last 24 hours.' }).waitFor();
    await page.goto(`${standalone.url}/console/o/default/overview`);
    await page.getByText('all closed, 1 opened').waitFor();
    await page.getByRole('img', { name: '1 circuit opened in the last 24 hours.' }).waitFor();
    expect({ errors: opened.errors, policyViolations: opened.policyViolations }).toEqual({ errors: [], policyViolations: [] });
  } finally {
    await standalone.stop();
    await receiver.close();
  }
}, 240_000);
