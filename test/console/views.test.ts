import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';
import { expectNoSideScroll } from './fitting.ts';

const script = `<img src=x onerror="document.title='taken'">"><script>document.title='taken'</script>`.slice(0, 60);
const shipped = [
  { name: script, screen: 'deliveries', search: { status: 'failed,dlq' } },
  { name: 'Of customers', screen: 'dead-letters', search: { kind: 'messages' } },
];

const suite = consoleSuite({ environment: { POSTHORN_CONSOLE_VIEWS: JSON.stringify(shipped) } });
const { made, sent, open, expectSound } = suite;
let receiver: Receiver;
let isDown = false;
beforeAll(async () => {
  receiver = await startReceiver((response) => {
    response.statusCode = isDown ? 503 : 200;
    response.end();
  });
  await made('sources', { name: 'shop' });
  await made('sources', { name: 'quiet' });
  const retryPolicy = { maxRetries: 1, initialDelay: 100, maxDelay: 100, backoffMultiplier: 1 };
  await made('destinations', { name: 'billing', url: receiver.url, retryPolicy });
  await made('destinations', { name: 'idle', url: receiver.url });
  await made('routes', { name: 'orders', sourceId: 'shop', destinationIds: ['billing'] });
  await sent('shop', { total: 1 });
  await sent('shop', { total: 2 });
  await settled('delivered', 2);
  isDown = true;
  await sent('shop', { total: 3 });
  await settled('dlq', 1);
}, 240_000);
afterAll(() => receiver?.close());

async function settled(status: string, number: number): Promise<void> {
  await eventually(`${number} ${status}`, 60_000, async () => {
    const { body } = await suite.rest.send('GET', `/api/deliveries?status=${status}`);
    return body.data.length === number;
  });
}

const searchOf = (page: Page): URLSearchParams => new URL(page.url()).searchParams;
const edge = (page: Page, name: 'Begin' | 'End') => page.getByRole('slider', { name: `${name} of the range` });
const stepOf = async (page: Page, name: 'Begin' | 'End'): Promise<number> => Number(await edge(page, name).getAttribute('aria-valuenow'));

/** An hour that ends at the next five minutes, so that what was just sent is in its last steps. */
function lastHour(): { from: string; to: string } {
  const to = Math.ceil((Date.now() + 1) / 300_000) * 300_000;
  return { from: new Date(to - 3_600_000).toISOString(), to: new Date(to).toISOString() };
}

describe('the histogram of a list', () => {
  test.each<[list: string, said: RegExp, counted: RegExp]>([
    ['events', /3 events came in from/, /Counted when they come in/],
    ['deliveries', /3 deliveries ended, 1 of them failed, from/, /Counted when they end/],
    ['dead-letters', /1 delivery failed from/, /Counted when they were given up/],
  ])('the histogram of a list of %s says what it counts in words, and has the counts as a table', async (list, said, counted) => {
    const page = await open(`o/default/${list}`);
    const chart = page.getByRole('region', { name: 'Counts over time' });
    await chart.getByText(said).first().waitFor();
    await chart.getByText(counted).waitFor();
    await chart.getByRole('img', { name: said }).waitFor();
    await chart.getByText('As a table').click();
    expect(await chart.getByRole('row').count()).toBeGreaterThan(40);
    expectSound();
  });

  test('the histogram of a list follows the filter that its series can be of, and says which others it does not follow', async () => {
    const page = await open('o/default/deliveries?destinationId=idle&status=delivered');
    await page.getByText('0 deliveries ended, 0 of them failed,').waitFor();
    await page.getByText('The counts are those of the destination in the filters. The counts ignore the filter status.').waitFor();
    await page.goto(`${suite.standalone.url}/console/o/default/events?sourceId=quiet&where=true`);
    await page.getByText('0 events came in').waitFor();
    await page.getByText('The counts are those of the source in the filters. The counts ignore the filter where.').waitFor();
    expectSound();
  });

  test('chooses a time that is dragged over, which filters the list until it is cleared', async () => {
    const { from, to } = lastHour();
    const page = await open(`o/default/deliveries?from=${from}&to=${to}`);
    await page.getByText('3 deliveries', { exact: false }).first().waitFor();
    const box = await page.getByRole('group', { name: /^Range of time\. Arrow/ }).boundingBox();
    if (box === null) throw new Error('there is no chart');
    const xOf = (step: number): number => box.x + 40 + ((box.width - 68) * step) / 12;
    await page.mouse.move(xOf(1.5), box.y + 40);
    await page.mouse.down();
    await page.mouse.move(xOf(2.5), box.y + 40, { steps: 3 });
    await page.mouse.move(xOf(4.5), box.y + 40, { steps: 3 });
    await page.getByRole('button', { name: 'Use this range' }).waitFor();
    await page.mouse.up();
    const at = (step: number): string => new Date(Date.parse(from) + step * 300_000).toISOString().replace('.000', '');
    await eventually(() => expect([searchOf(page).get('from'), searchOf(page).get('to')]).toEqual([at(1), at(5)]));
    await page.getByRole('heading', { name: 'No deliveries match' }).waitFor();
    await page.getByRole('button', { name: 'Clear the range' }).click();
    await eventually(() => expect([...searchOf(page).keys()]).toEqual([]));
    await page.getByText('3 deliveries', { exact: true }).waitFor();
    expectSound();
  });

  test('the histogram of a list is worked with the keys alone: arrows move an edge, with Shift the range, Escape drops it and Enter applies it', async () => {
    const { from, to } = lastHour();
    const page = await open(`o/default/dead-letters?failedFrom=${from}&failedTo=${to}`);
    await edge(page, 'Begin').focus();
    expect([await stepOf(page, 'Begin'), await stepOf(page, 'End')]).toEqual([0, 12]);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('PageUp');
    expect(await stepOf(page, 'Begin')).toBe(2);
    await page.keyboard.press('Escape');
    expect(await stepOf(page, 'Begin')).toBe(0);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Shift+ArrowRight');
    expect([await stepOf(page, 'Begin'), await stepOf(page, 'End')]).toEqual([1, 3]);
    const end = new Date(Date.parse(from) + 900_000).toISOString().replace('.000', '');
    expect(await edge(page, 'End').getAttribute('aria-valuetext')).toBe(`${end.slice(5, 10)} ${end.slice(11, 16)}`);
    await page.keyboard.press('Enter');
    await eventually(() => expect(searchOf(page).get('failedTo')).toBe(end));
    await page.getByRole('heading', { name: 'No dead letters match' }).waitFor();
    expect(new URL(page.url()).pathname).toMatch(/\/dead-letters$/);
    expectSound();
  });

  test('the histogram of a list has quick ranges, and says where it has no counts', async () => {
    const page = await open('o/default/events');
    const before = Date.now();
    await page.getByRole('button', { name: '15 min' }).click();
    await eventually(() => expect(searchOf(page).get('from')).not.toBeNull());
    expect(Math.abs(before - 900_000 - Date.parse(searchOf(page).get('from') ?? ''))).toBeLessThan(60_000);
    await page.getByText('3 events came in').first().waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toBe('15 min');
    await page.goto(`${suite.standalone.url}/console/o/default/events?to=2020-01-31`);
    await page.getByText('There are no counts of this range').waitFor();
    expectSound();
  });

  test('the histogram of a list is read after the list, and its failure leaves the list as it is', async () => {
    const page = await open('o/default/overview');
    await page.route('**/analytics/series**', (route) =>
      route.fulfill({ status: 500, contentType: 'application/json', body: '{"message":"The figures are away."}' }),
    );
    await page.goto(`${suite.standalone.url}/console/o/default/events`);
    await page.getByText('The counts cannot be read: The figures are away.').waitFor({ timeout: 60_000 });
    await page.getByText('3 events', { exact: true }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });
});

test('a time that is being chosen and the open views have no fault that axe finds in either theme, and fit in 320 pixels', async () => {
  const page = await open('o/default/deliveries?status=dlq', { reducedMotion: 'reduce' });
  await edge(page, 'Begin').press('PageUp');
  await page.getByText('As a table').click();
  await page.getByRole('button', { name: /^Views/ }).click();
  await page.getByRole('region', { name: 'Views' }).waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await accessibilityViolations(page, { rules: ['color-contrast'] })).toEqual([]);
  expect(await page.evaluate('document.getAnimations().length')).toBe(0);
  await page.setViewportSize({ width: 320, height: 512 });
  await expectNoSideScroll(page, 320);
  expectSound();
});

describe('the views of a list', () => {
  const menu = (page: Page) => page.getByRole('region', { name: 'Views' });
  const opened = async (page: Page): Promise<void> => page.getByRole('button', { name: /^Views/ }).click();
  const save = async (page: Page, name: string): Promise<void> => {
    await menu(page).getByLabel('Save these filters as').fill(name);
    await menu(page).getByRole('button', { name: 'Save' }).click();
  };

  test('the views of a list of the operator are marked, cannot be changed, and show their names as text', async () => {
    const page = await open('o/default/deliveries');
    await opened(page);
    await menu(page).getByText('shipped').waitFor();
    expect(
      await menu(page)
        .getByRole('button', { name: /^(Rename|Delete)/ })
        .count(),
    ).toBe(0);
    await menu(page).getByRole('link', { name: script }).click();
    await eventually(() => expect(searchOf(page).get('status')).toBe('failed,dlq'));
    await page.getByRole('button', { name: `Views ${script}` }).waitFor();
    expect(await page.title()).toBe('Deliveries · Posthorn');
    expect(await page.locator('img').count()).toBe(0);
    expectSound();
  });

  test('keep the filters under a name, are renamed, replaced after a question and deleted', async () => {
    const page = await open('o/default/deliveries?destinationId=billing');
    await opened(page);
    await save(page, ' Billing ');
    await menu(page).getByRole('link', { name: 'Billing' }).and(page.locator('[aria-current]')).waitFor();
    await page.goto(`${suite.standalone.url}/console/o/default/deliveries?status=dlq`);
    await opened(page);
    await save(page, 'Billing');
    await page.getByRole('dialog').getByRole('button', { name: 'Replace view' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await menu(page).getByRole('button', { name: 'Rename view Billing' }).click();
    await menu(page)
      .getByLabel('New name of Billing')
      .fill(`${script.slice(0, 50)} 2`);
    await menu(page).getByRole('button', { name: 'Rename', exact: true }).click();
    const hasFocus = (name: string): Promise<void> =>
      eventually(async () =>
        expect(await page.evaluate('document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent')).toBe(name),
      );
    await hasFocus(`Rename view ${script.slice(0, 50)} 2`);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    await hasFocus(`Rename view ${script.slice(0, 50)} 2`);
    await page.goto(`${suite.standalone.url}/console/o/default/deliveries`);
    await opened(page);
    await menu(page)
      .getByRole('link', { name: `${script.slice(0, 50)} 2` })
      .click();
    await eventually(() => expect(page.url()).toMatch(/\/deliveries\?status=dlq$/));
    await opened(page);
    await menu(page)
      .getByRole('button', { name: /^Delete view/ })
      .click();
    await page.getByRole('button', { name: 'Delete view', exact: true }).click();
    await eventually(async () => expect(await menu(page).getByRole('listitem').count()).toBe(1));
    await hasFocus('Views');
    expect(await page.title()).not.toContain('taken');
    expectSound();
  });

  test('the views of a list are of one list, stay after the page is loaded again, and are found by Ctrl K', async () => {
    const page = await open('o/default/events?sourceId=shop');
    await opened(page);
    await save(page, 'Of the shop');
    await page.keyboard.press('Escape');
    await menu(page).waitFor({ state: 'detached' });
    await page.goto(`${suite.standalone.url}/console/o/default/messages`);
    await opened(page);
    await page.getByText('No view yet').waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('of the shop');
    await page.getByRole('option', { name: 'Of the shop view of events' }).waitFor();
    await page.keyboard.press('Enter');
    await eventually(() => expect(page.url()).toMatch(/\/events\?sourceId=shop$/));
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('of customers');
    await page.getByRole('option', { name: 'Of customers view of dead letters' }).click();
    await eventually(() => expect(page.url()).toMatch(/\/dead-letters\?kind=messages$/));
    expectSound();
  });

  test.each([
    ['no JSON', '{'],
    ['a list', '[1]'],
    [
      'views that are none',
      '{"default":{"events":[null,1,{"name":7},{"name":"a"},{"name":"b","search":{"status":["x"],"at":"evt_1"}}],"messages":"x"}}',
    ],
  ])('the views of a list that a browser keeps do not break the list where they are %s', async (_title, stored) => {
    const page = await open('o/default/overview');
    await page.evaluate(`localStorage.setItem('posthorn.views', ${JSON.stringify(stored)})`);
    await page.goto(`${suite.standalone.url}/console/o/default/events?sourceId=shop`);
    await opened(page);
    await save(page, 'Kept');
    await menu(page).getByRole('link', { name: 'Kept' }).waitFor();
    expectSound();
  });

  test('the views of a list are at most 50 on a list', async () => {
    const page = await open('o/default/overview');
    const views = Array.from({ length: 60 }, (_, n) => ({ name: `view ${n}`, search: { sourceId: `${n}` } }));
    await page.evaluate(`localStorage.setItem('posthorn.views', ${JSON.stringify(JSON.stringify({ default: { events: views } }))})`);
    await page.goto(`${suite.standalone.url}/console/o/default/events?sourceId=shop`);
    await opened(page);
    expect(await menu(page).getByRole('listitem').count()).toBe(50);
    await save(page, 'One more');
    await menu(page).getByRole('alert').getByText('There are 50 views already').waitFor();
    expectSound();
  });
});

test('the palette finds a name that looks like an id, and says when it could not search for it', async () => {
  const source = await made('sources', { name: 'order_paid' });
  const page = await open('o/default/overview');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.keyboard.press('Control+k');
  const field = page.getByRole('combobox');
  await field.fill('order_paid');
  await page.getByRole('option', { name: 'order_paid source' }).waitFor();
  // Pasted text replaces the selection.
  await field.selectText();
  await page.evaluate(`{
    const clipboardData = new DataTransfer();
    clipboardData.setData('text', ${JSON.stringify(`${source}\n${source.replace(/.$/, 'a')}x`)});
    document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  }`);
  await page.getByRole('option', { name: '2 ids what became of each' }).waitFor();
  await field.fill('x'.repeat(201));
  await page.getByText('A search has at most 200 characters.').waitFor();
  await page.route('**/destinations?*search=*', (route) => route.fulfill({ status: 403, json: { message: 'Not with this key.' } }));
  await field.fill('nowhere');
  await page.getByText('Not everything was searched: Not with this key.').waitFor();
  expect(await page.getByText('Nothing has that name.').count()).toBe(0);
  expect(await accessibilityViolations(page)).toEqual([]);
});

test('four of several ids are requested at a time, each once, and those that the API could not answer are requested again by a button', async () => {
  const ids = Array.from({ length: 9 }, (_, i) => `msg_${String(i).repeat(26)}`);
  const page = await open('o/default/overview');
  const asked: string[] = [];
  let atOnce = 0;
  let maxAtOnce = 0;
  await page.route('**/explain/*', async (route) => {
    const id = route.request().url().split('/').at(-1) ?? '';
    atOnce += 1;
    maxAtOnce = Math.max(maxAtOnce, atOnce);
    asked.push(id);
    await new Promise((resolve) => setTimeout(resolve, 100));
    atOnce -= 1;
    const isAway = asked.length <= 9 && ids.indexOf(id) < 2;
    if (isAway) await route.fulfill({ status: 503, json: { message: 'Redis is away.' } });
    else await route.continue();
  });
  await page.goto(`${suite.standalone.url}/console/o/default/ids?ids=${ids.join(',')}`);
  await page.getByText('7 read, 2 failed').waitFor();
  expect(asked.toSorted()).toEqual(ids);
  expect(maxAtOnce).toBe(4);
  const failure = page.getByRole('alert');
  await failure.getByText('Redis is away.').waitFor();
  await failure.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('All are read.').waitFor();
  expect(asked.slice(9).toSorted()).toEqual(ids.slice(0, 2));
  expect(await failure.count()).toBe(0);
});
