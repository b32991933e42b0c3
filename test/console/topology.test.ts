import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';
import { expectNoSideScroll } from './fitting.ts';

const script = '<img src=x onerror="document.title=\'taken\'">';
const suite = consoleSuite();
const { made, sent, open, expectSound } = suite;

const column = (page: Page, name: string): Locator => page.getByRole('tree', { name: `${name}, worst first` });
const rows = (page: Page, name: string): Locator => column(page, name).getByRole('treeitem');
const atOf = (page: Page): string | null => new URL(page.url()).searchParams.get('at');

test('where no route is, the topology says what to do, with a command', async () => {
  const page = await open('o/default/topology');
  await page.getByRole('heading', { name: 'No route yet' }).waitFor();
  await page.getByRole('region', { name: 'Command' }).getByText('"destinationIds"').waitFor();
  expectSound();
});

describe('a topology of 500 routes', () => {
  const sourceCount = 20;
  const destinationCount = 100;
  let receiver: Receiver;
  let shop: string;
  let billing: string;
  let orders: string;
  beforeAll(async () => {
    receiver = await startReceiver((response) => {
      response.statusCode = 503;
      response.end();
    });
    const sources = await inTurn(sourceCount, (i) => made('sources', { name: i === 0 ? 'shop' : `source ${i}` }));
    const destinations = await inTurn(destinationCount, (i) =>
      made('destinations', { name: i === 0 ? 'billing' : i === 1 ? script : `target ${i}`, url: receiver.url }),
    );
    [shop = ''] = sources;
    [billing = ''] = destinations;
    const circuit = { circuitFailureThreshold: 1, circuitCooldownSeconds: 600 };
    orders = await made('routes', { name: 'orders', sourceId: shop, destinationIds: [billing], ...circuit });
    await inTurn(499, (i) =>
      made('routes', {
        name: `route ${i}`,
        sourceId: sources[1 + (i % (sourceCount - 1))],
        destinationIds: [destinations[1 + (i % (destinationCount - 1))]],
      }),
    );
    await sent('shop', { total: 1 });
    await eventually('the circuit to open', 30_000, async () => {
      const { body } = await suite.rest.send('GET', `/api/routes/${orders}/circuit-status`);
      return body.circuitState === 'open';
    });
  }, 240_000);
  afterAll(() => receiver?.close());

  test('a topology of 500 routes has all of them within reach and few of them in the page, with the open circuit at the top', async () => {
    const page = await open('o/default/topology', { viewport: { width: 1280, height: 800 } });
    await page.getByText('500 routes from 20 sources to 100 destinations. 1 route with an open circuit.').waitFor();
    const first = rows(page, 'Routes').first();
    expect(await first.getAttribute('aria-setsize')).toBe('500');
    expect(await first.textContent()).toMatch(/orders.*Circuit open/);
    expect(await rows(page, 'Destinations').first().textContent()).toMatch(/billing.*Circuit open/);
    expect(await rows(page, 'Sources').count()).toBe(sourceCount);
    expect(await rows(page, 'Routes').count()).toBeLessThan(60);
    expect(await page.evaluate("document.querySelectorAll('.topo *').length")).toBeLessThan(1500);
    expect(await page.evaluate("document.querySelectorAll('.topo-lines path').length")).toBeLessThan(150);
    expect(await page.locator('.topo-lines path.s-open').count()).toBe(1);
    expect(await page.locator('.topo-lines:not([aria-hidden="true"])').count()).toBe(0);
    expect(await accessibilityViolations(page)).toEqual([]);
    expectSound();
  });

  test('names are text', async () => {
    const page = await open('o/default/topology?search=onerror');
    await rows(page, 'Destinations').getByText(script).waitFor();
    await rows(page, 'Destinations').click();
    await page.getByText(`${script} gets events by`).waitFor();
    expect(await page.title()).toBe('Topology · Posthorn');
    expect(await page.locator('main img').count()).toBe(0);
    expectSound();
  });

  test('a search finds a route with its ends, and the address keeps it', async () => {
    const page = await open('o/default/topology');
    await page.getByRole('searchbox', { name: 'Search the names' }).fill('route 123');
    await eventually(async () => expect(await rows(page, 'Routes').allTextContents()).toEqual([expect.stringContaining('route 123')]));
    expect(await rows(page, 'Sources').count()).toBe(1);
    expect(await rows(page, 'Destinations').count()).toBe(1);
    expect(new URL(page.url()).searchParams.get('search')).toBe('route 123');
    await page.reload();
    await eventually(async () => expect(await rows(page, 'Routes').count()).toBe(1));
    await page.getByText('Shown: 1 route from 1 source to 1 destination. None of these has failed in the last hour.').waitFor();
    await page.getByRole('searchbox').fill('nothing has this name');
    await page.getByRole('heading', { name: 'Nothing matches' }).waitFor();
    await page.getByRole('button', { name: 'Drop all filters' }).click();
    await page.getByText('500 routes from').waitFor();
    expectSound();
  });

  test('a search takes each letter as it is typed, also in the middle of the text', async () => {
    const page = await open('o/default/topology');
    const search = page.getByRole('searchbox', { name: 'Search the names' });
    await search.pressSequentially('target 12');
    expect(await search.inputValue()).toBe('target 12');
    for (let i = 0; i < 5; i += 1) await search.press('ArrowLeft');
    await search.pressSequentially('--abc--');
    expect(await search.inputValue()).toBe('targ--abc--et 12');
    await eventually(() => expect(new URL(page.url()).searchParams.get('search')).toBe('targ--abc--et 12'));
    await page.getByRole('button', { name: 'Drop all filters' }).click();
    await eventually(async () => expect(await search.inputValue()).toBe(''));
    expectSound();
  });

  test('a selected node shows what is joined to it, says since when it is cut off, and leads to its screen', async () => {
    const page = await open('o/default/topology');
    await rows(page, 'Destinations').getByText('billing').click();
    await page.getByText('billing gets events by 1 route from 1 source').waitFor();
    await page.getByText(/^orders to billing: circuit open, events wait, opened/).waitFor();
    expect(atOf(page)).toBe(billing);
    expect(await rows(page, 'Sources').allTextContents()).toEqual([expect.stringContaining('shop')]);
    expect(await rows(page, 'Routes').allTextContents()).toEqual([expect.stringContaining('orders')]);
    expect(await rows(page, 'Destinations').count()).toBeGreaterThan(1);
    await page.getByRole('link', { name: 'Open destination' }).click();
    await page.waitForURL(`**/targets/${billing}`);
    await page.goBack();
    await page.getByText('billing gets events by').waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByText('500 routes from').waitFor();
    expect(atOf(page)).toBeNull();
    expectSound();
  });

  test('the filter of what is wrong leaves that and what is joined to it', async () => {
    const page = await open('o/default/topology');
    await page.getByRole('checkbox', { name: 'Only what is wrong' }).check();
    await eventually(async () => expect(await rows(page, 'Routes').count()).toBe(1));
    expect(new URL(page.url()).searchParams.get('wrong')).toBe('true');
    expect(await rows(page, 'Sources').allTextContents()).toEqual([expect.stringContaining('shop')]);
    expect(await rows(page, 'Destinations').allTextContents()).toEqual([expect.stringContaining('billing')]);
    expectSound();
  });

  test('routes fold by their source, and a group opens where it is selected', async () => {
    const page = await open('o/default/topology');
    await page.getByRole('button', { name: 'Source', exact: true }).click();
    await eventually(async () => expect(await rows(page, 'Routes').first().getAttribute('aria-setsize')).toBe(`${sourceCount}`));
    expect(new URL(page.url()).searchParams.get('routes')).toBe('source');
    const group = rows(page, 'Routes').filter({ hasText: 'from source 1' }).first();
    expect(await group.getAttribute('aria-expanded')).toBe('false');
    await group.click();
    await eventually(async () => expect(await group.getAttribute('aria-expanded')).toBe('true'));
    await page.getByText(/^2[67] routes lead from source 1 to/).waitFor();
    expect(await rows(page, 'Routes').and(page.locator('[aria-level="2"]')).count()).toBeGreaterThan(5);
    expect(atOf(page)).toMatch(/^source\.src_/);
    await page.getByRole('button', { name: 'Pair', exact: true }).click();
    await page.getByText('500 routes from').waitFor();
    expect(atOf(page)).toBeNull();
    expectSound();
  });

  test('keys go along a column and from one to the next, open a node and deselect it', async () => {
    const page = await open('o/default/topology');
    await page.getByText('500 routes from').waitFor();
    await page.keyboard.press('j');
    await eventually(() => expect(atOf(page)).toBe(shop));
    const selected = (name: string): Promise<string[]> => rows(page, name).and(page.locator('[aria-selected="true"]')).allTextContents();
    await eventually(async () => expect(await selected('Sources')).toEqual([expect.stringContaining('shop')]));
    await column(page, 'Sources').focus();
    await page.keyboard.press('ArrowRight');
    await eventually(() => expect(atOf(page)).toBe(orders));
    await eventually(async () => expect(await column(page, 'Routes').getAttribute('aria-activedescendant')).toMatch(/-0$/));
    await page.keyboard.press('ArrowRight');
    await eventually(() => expect(atOf(page)).toBe(billing));
    await page.keyboard.press('ArrowDown');
    await eventually(async () => expect(await selected('Destinations')).toEqual([expect.stringContaining(script)]));
    await page.keyboard.press('Home');
    await eventually(() => expect(atOf(page)).toBe(billing));
    await page.keyboard.press('Escape');
    await eventually(() => expect(atOf(page)).toBeNull());
    await column(page, 'Destinations').focus();
    await page.keyboard.press('ArrowDown');
    await eventually(() => expect(atOf(page)).toBe(billing));
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/targets/${billing}`);
    await page.keyboard.press('g');
    await page.keyboard.press('y');
    await page.waitForURL('**/topology');
    expectSound();
  });

  test('on 320 pixels the columns are below each other, without lines', async () => {
    const page = await open('o/default/topology', { viewport: { width: 320, height: 640 } });
    await page.getByText('500 routes from').waitFor();
    const tops = await Promise.all(
      ['Sources', 'Routes', 'Destinations'].map(async (name) => (await column(page, name).boundingBox())?.y ?? Number.NaN),
    );
    expect(tops).toEqual(tops.toSorted((one, other) => one - other));
    expect(new Set(tops).size).toBe(3);
    expect(await page.locator('.topo-lines:visible').count()).toBe(0);
    await expectNoSideScroll(page, 320);
    expectSound();
  });

  test('while the API fails, the topology reports it', async () => {
    const page = await open('o/default/overview');
    await page.route('**/analytics/routes**', (route) => route.fulfill({ status: 503, body: '{"message":"Redis is away."}' }));
    await page.goto(`${suite.standalone.url}/console/o/default/topology`);
    await page.getByRole('alert').getByText('Redis is away.').waitFor();
    await page.unrouteAll();
    await page.getByText('500 routes from').waitFor();
    await eventually(async () => expect(await page.getByRole('alert').count()).toBe(0));
  });

  test.each([
    [1000, 0],
    [1001, 1],
  ])('of %d routes it says %d times that there are more than are shown', async (total, times) => {
    const { body } = await suite.rest.send('GET', '/api/routes?page=1&pageSize=1');
    const page = await open('o/default/overview');
    await page.route(
      ({ pathname }) => pathname === '/api/organizations/default/routes',
      (route) => {
        const number = Number(new URL(route.request().url()).searchParams.get('page'));
        const ids = Array.from({ length: Math.min(100, total - (number - 1) * 100) }, (_, i) => `rte_${number}x${i}`);
        return route.fulfill({
          json: { data: ids.map((id) => ({ ...body.data[0], id, name: id })), pagination: { total, page: number, pageSize: 100 } },
        });
      },
    );
    await page.goto(`${suite.standalone.url}/console/o/default/topology`);
    await page.getByText('1,000 routes from').waitFor();
    expect(await page.getByText('The first 1,000 routes are shown; there are more.').count()).toBe(times);
    expectSound();
  });

  test('the map keeps its focus and its place while a second page comes', async () => {
    const page = await open('o/default/topology');
    await page.getByText('to 100 destinations').waitFor();
    const asked: string[] = [];
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(
      ({ pathname, searchParams }) => pathname === '/api/organizations/default/destinations' && searchParams.get('page') === '2',
      async (route) => {
        asked.push(route.request().url());
        await held;
        await route.continue();
      },
    );
    await column(page, 'Destinations').focus();
    await page.evaluate('void (document.activeElement.scrollTop = 340)');
    const place = (): Promise<unknown> => page.evaluate('[document.activeElement.ariaLabel, document.activeElement.scrollTop]');
    await made('destinations', { name: 'the last', url: receiver.url });
    await eventually('the second page to be asked for', 30_000, () => asked.length > 0);
    expect(await page.getByText('to 100 destinations').count()).toBe(1);
    expect(await place()).toEqual(['Destinations, worst first', 340]);
    release();
    await page.getByText('to 101 destinations').waitFor();
    expect(await place()).toEqual(['Destinations, worst first', 340]);
    expectSound();
  }, 60_000);

  test('a topology of 500 routes is counted as a whole on the overview and listed as a whole as targets, the worst first, and the search finds what is beyond the first hundred', async () => {
    const page = await open('o/default/overview');
    await page.getByText(`One of ${destinationCount + 1} targets is failing.`).waitFor();
    await page.getByRole('region', { name: 'What is wrong' }).getByRole('link', { name: 'billing' }).waitFor();
    await page.goto(`${suite.standalone.url}/console/o/default/targets`);
    await page.getByText(`${destinationCount + 1} targets`).waitFor();
    const first = page.getByRole('region', { name: 'targets' }).getByRole('row').nth(1);
    await eventually(async () => expect(await first.textContent()).toMatch(/billing.*Circuit open/));
    for (const [text, option] of [
      ['billing', 'billing destination'],
      ['orders', 'orders route'],
    ] as const) {
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox').fill(text);
      await page.getByRole('option', { name: option, exact: true }).waitFor();
      await page.keyboard.press('Escape');
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    expectSound();
  });
});

async function inTurn<Made>(times: number, make: (i: number) => Promise<Made>): Promise<Made[]> {
  const all: Made[] = [];
  for (let i = 0; i < times; i += 1) all.push(await make(i));
  return all;
}
