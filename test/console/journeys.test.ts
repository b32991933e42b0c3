import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { z } from 'zod';
import { RestClient } from '../e2e/rest.ts';
import { accessibilityViolations, openPage, startBrowser, type WatchedPage } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Standalone, startStandalone } from '../support/program.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { buildConsole } from './built-console.ts';
import { listScreens } from './screens.ts';

const accepted = z.object({ eventId: z.string() });
const script = '<img src=x onerror="document.title=\'taken\'"><script>document.title="taken"</script>';

let browser: Browser;
let standalone: Standalone;
let rest: RestClient;
let receiver: Receiver;
let isDown = false;
let opened: WatchedPage;

beforeAll(async () => {
  await buildConsole();
  browser = await startBrowser();
  standalone = await startStandalone({ environment: { POSTHORN_HOST: '127.0.0.1' } });
  rest = new RestClient(standalone.url, standalone.key);
  receiver = await startReceiver((response) => {
    response.statusCode = isDown ? 503 : 200;
    response.setHeader('x-served-by', isDown ? 'node-1' : 'node-2');
    response.end(isDown ? script : 'ok');
  });
}, 240_000);
afterEach(async () => {
  await opened?.close();
  isDown = false;
});
afterAll(async () => {
  await browser?.close();
  await standalone?.stop();
  await receiver?.close();
});

async function made(path: string, body: unknown): Promise<string> {
  const answer = await rest.send('POST', `/api/${path}`, body);
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body.id ?? answer.body.data.id;
}

/** An event of the source; answers its id. */
async function sent(source: string, payload: unknown): Promise<string> {
  const response = await fetch(`${standalone.url}/ingest/default/${source}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(payload),
  });
  return accepted.parse(await response.json()).eventId;
}

async function open(path: string, options: Parameters<typeof openPage>[1] = {}): Promise<Page> {
  opened = await openPage(browser, options);
  await opened.page.goto(`${standalone.url}/console/${path}`);
  return opened.page;
}

function expectSound(): void {
  expect({ errors: opened.errors, policyViolations: opened.policyViolations }).toEqual({ errors: [], policyViolations: [] });
}

describe('a console on a machine where nothing has happened', () => {
  test('opens without a login, and its first event shows on the live screen by itself', async () => {
    await made('sources', { name: 'first' });
    const page = await open('o/default/live?topic=events');
    await page.getByText('Connected').waitFor();
    const id = await sent('first', { hello: 'world' });
    await page.getByText('Received').first().waitFor();
    await page.getByTitle(id).waitFor();
    expectSound();
  });

  test('Ctrl K opens the story of an id that is pasted, and keys go to screens', async () => {
    const id = await sent('first', { hello: 'again' });
    const page = await open('o/default/overview');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill(id);
    await page.getByRole('option', { name: id }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/events/${id}`);
    await page.getByText('first').first().waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('d');
    await page.waitForURL('**/dead-letters');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expectSound();
  });
});

describe('an outage', () => {
  let event: string;
  beforeAll(async () => {
    await made('sources', { name: 'shop' });
    await made('destinations', {
      name: 'billing',
      url: receiver.url,
      retryPolicy: { maxRetries: 1, initialDelay: 100, maxDelay: 100, backoffMultiplier: 1 },
    });
    await made('destinations', { name: 'fraud', url: receiver.url });
    await made('routes', { name: 'orders to billing', sourceId: 'shop', destinationIds: ['billing'] });
    await made('routes', {
      name: 'large orders to fraud',
      sourceId: 'shop',
      destinationIds: ['fraud'],
      filterConditions: [{ field: 'payload.total', operator: 'gt', value: 1000 }],
    });
    isDown = true;
    event = await sent('shop', { total: 125.5, note: script, exact: '12345678901234567890' });
    await eventually('the dead letter', 30_000, async () => {
      const { body } = await rest.send('GET', '/api/deliveries?status=dlq');
      return body.data.length === 1;
    });
  }, 120_000);

  test('is told from the event to the attempts, and what a route wanted instead', async () => {
    const page = await open(`o/default/events/${event}`);
    await page.getByText('payload.total gt 1000', { exact: true }).waitFor();
    await page.getByText('125.5').first().waitFor();
    const dead = page.getByRole('listitem').filter({ hasText: 'Dead letter' });
    await dead.getByRole('link', { name: /^msg_/ }).click();
    await page.waitForURL('**/deliveries/msg_*');
    await page.getByText('because all its attempts failed').first().waitFor();
    await page.getByRole('link', { name: 'Compare attempt 2 with attempt 1' }).click();
    await page.waitForURL('**with=1**');
    await page.getByRole('region', { name: 'Comparison' }).waitFor();
    expectSound();
  });

  test('shows what others wrote as text, whatever they wrote', async () => {
    const page = await open(`o/default/events/${event}`);
    await page.getByText('onerror').first().waitFor();
    const { body } = await rest.send('GET', '/api/deliveries?status=dlq');
    await page.goto(`${standalone.url}/console/o/default/deliveries/${body.data[0].id}`);
    await page.getByText('onerror').first().waitFor();
    expect(await page.title()).not.toContain('taken');
    expect(await page.locator('img').count()).toBe(0);
    expectSound();
  });

  test('ends with a delivery that is sent again, whose story opens', async () => {
    const { body } = await rest.send('GET', '/api/deliveries?status=dlq');
    const page = await open(`o/default/deliveries/${body.data[0].id}`);
    await page.getByRole('button', { name: 'Send again…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click();
    await page.waitForURL((url) => url.pathname.includes('/deliveries/msg_') && !url.pathname.endsWith(body.data[0].id));
    await page.getByText('Delivered').first().waitFor();
    expectSound();
  });

  test('is recovered by a filter: counted, then sent again, with a report', async () => {
    const page = await open('o/default/dead-letters?routeId=orders-to-billing');
    await page.getByRole('region', { name: 'What do I have to recover?' }).waitFor();
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay 1 deliveries' }).click();
    await page.waitForURL('**/replays/rep_*');
    await page.getByText('Succeeded').first().waitFor();
    await page.getByText('1 a second').or(page.getByText('50 a second')).first().waitFor();
    expectSound();
  });

  test('lists keep their filters and the selected row in the address', async () => {
    const page = await open('o/default/deliveries');
    await page.getByRole('button', { name: 'Filter', exact: true }).click();
    await page.getByRole('combobox', { name: 'Value' }).selectOption('dlq');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.waitForURL('**status=dlq**');
    await page.getByText('1 deliveries').waitFor();
    await page.keyboard.press('j');
    await page.waitForURL('**at=msg_**');
    await page.keyboard.press('Escape');
    await page.waitForURL((url) => !url.search.includes('at='));
    await page.getByRole('region', { name: 'deliveries' }).focus();
    await page.keyboard.press('ArrowDown');
    await page.waitForURL('**at=msg_**');
    await page.getByRole('complementary', { name: 'Selected delivery' }).waitFor();
    await page.reload();
    await page.getByRole('complementary', { name: 'Selected delivery' }).waitFor();
    expectSound();
  });
});

describe.each(['light', 'dark'] as const)('every screen in %s', (colorScheme) => {
  test.each(listScreens)('%s has no fault that axe finds, and fits in 320 pixels', async (screen) => {
    const page = await open(`o/default/${screen}`, { colorScheme });
    await page.getByRole('heading', { level: 1 }).waitFor();
    await eventually(async () => expect(await page.getByText(/^Reading /).count()).toBe(0));
    expect(await accessibilityViolations(page, colorScheme === 'dark' ? { rules: ['wcag2aa'] } : {})).toEqual([]);
    await page.setViewportSize({ width: 320, height: 640 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320);
    expectSound();
  });
});

describe('while the API is away the console says so, and recovers by itself,', () => {
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

test('an installation that others reach asks for a key, and forgets it when the reader signs out', async () => {
  const reachable = await startStandalone({ environment: { POSTHORN_HOST: '0.0.0.0' } });
  try {
    opened = await openPage(browser);
    const { page } = opened;
    await page.goto(`${reachable.url}/console/o/default/routes`);
    await page.waitForURL('**/login**');
    await page.getByLabel('API key', { exact: true }).last().fill('ph_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('The API key is not valid.').waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.getByLabel('API key', { exact: true }).last().fill(reachable.key);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/o/default/routes');
    await page.getByRole('heading', { name: 'Routes' }).waitFor();
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ name: 'posthorn_session', httpOnly: true, sameSite: 'Strict' });
    expect(await page.evaluate('JSON.stringify([document.cookie, localStorage, sessionStorage])')).not.toContain(reachable.key);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL('**/login**');
    await page.goto(`${reachable.url}/console/o/default/routes`);
    await page.waitForURL('**/login**');
    expectSound();
  } finally {
    await reachable.stop();
  }
}, 180_000);
