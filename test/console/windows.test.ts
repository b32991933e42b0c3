import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { consoleSuite } from './console-suite.ts';

const suite = consoleSuite({ environment: { POSTHORN_CONSOLE_THEME: 'dark' } });
const { made, sent, open, expectSound } = suite;

/** Another window of the browser that has the page. */
async function windowBeside(page: Page, path: string): Promise<Page> {
  const other = await page.context().newPage();
  await other.goto(`${suite.standalone.url}/console/${path}`);
  return other;
}

test('the windows of a browser that follow the same have the rows of one stream, and one continues when another is closed', async () => {
  await made('sources', { name: 'shared' });
  const streams: string[] = [];
  const first = await open('o/default/live?topic=events');
  first.context().on('request', (request) => {
    if (request.url().includes('/stream?')) streams.push(request.url());
  });
  await first.getByText('Connected', { exact: true }).waitFor();
  const second = await windowBeside(first, 'o/default/live?topic=events');
  await second.getByText('Connected', { exact: true }).waitFor();
  await first.getByText('Connected through another window').waitFor();
  const ofBoth = await sent('shared', { n: 1 });
  for (const page of [first, second]) await page.getByTitle(ofBoth).waitFor();
  expect(await accessibilityViolations(first)).toEqual([]);

  // A window that follows something else does not get these rows.
  const third = await windowBeside(first, 'o/default/live?topic=deliveries');
  await third.getByText('Connected', { exact: true }).waitFor();
  for (const page of [first, second]) await page.getByText('Another window has the stream.', { exact: false }).waitFor();
  const before = streams.length;
  await third.close();
  await eventually(async () => {
    const states = await Promise.all([first, second].map((page) => page.locator('.table-foot [role=status]').textContent()));
    expect(states.sort()).toEqual(['Connected', 'Connected through another window']);
  });
  expect(streams.length).toBe(before + 1);
  // What came meanwhile comes after, once in each.
  const later = await sent('shared', { n: 2 });
  for (const page of [first, second]) {
    await page.getByTitle(later).waitFor();
    expect(await page.getByTitle(ofBoth).count()).toBe(1);
  }
  expectSound();
}, 120_000);

test('eight windows of a browser work over HTTP/1.1, of whose connections one is a stream', async () => {
  await made('sources', { name: 'eight' });
  const first = await open('o/default/overview');
  let streams = 0;
  first.context().on('request', (request) => {
    if (request.url().includes('/stream?')) streams += 1;
  });
  first.context().on('requestfinished', (request) => {
    if (request.url().includes('/stream?')) streams -= 1;
  });
  first.context().on('requestfailed', (request) => {
    if (request.url().includes('/stream?')) streams -= 1;
  });
  await first.goto(`${suite.standalone.url}/console/o/default/live?topic=events`);
  await first.getByText('Connected', { exact: true }).waitFor();
  const others: Page[] = [];
  for (const topic of ['deliveries', 'messages', 'circuits', 'replays', 'events', 'deliveries', 'events']) {
    const page = await windowBeside(first, `o/default/live?topic=${topic}`);
    others.push(page);
    // The window that was opened last has the stream.
    await page.getByText('Connected', { exact: true }).waitFor();
  }
  const id = await sent('eight', { n: 1 });
  await others.at(-1)?.getByTitle(id).waitFor();
  await eventually(() => expect(streams).toBe(1));
  // Six connections to a host is all that a browser has over HTTP/1.1.
  for (const page of [first, ...others]) {
    await page.getByRole('link', { name: 'Sources', exact: true }).click();
    await page.getByRole('cell', { name: 'eight', exact: true }).waitFor();
  }
  expectSound();
}, 120_000);

test('a window that has its rows from another one does not say that it is connected while that one is not', async () => {
  const path = 'o/default/live?topic=events';
  const first = await open(path);
  await first.getByText('Connected', { exact: true }).waitFor();
  const streams = '**/stream?**';
  await first.context().route(streams, (route) => route.abort());
  const second = await windowBeside(first, path);
  await second.getByText('Not connected').waitFor();
  await first.getByText('Connecting…').waitFor();
  await first.context().unroute(streams);
  await second.getByText('Connected', { exact: true }).waitFor();
  await first.getByText('Connected through another window').waitFor();
  expectSound();
}, 120_000);

test('compact tables show more rows in the same space, also after the page is opened again', async () => {
  await made('sources', { name: 'compact' });
  await Promise.all(Array.from({ length: 120 }, (_none, number) => sent('compact', { number })));
  const page = await open('o/default/events?sourceId=compact', { viewport: { width: 1280, height: 800 } });
  const list = page.getByRole('region', { name: 'events' });
  const heights = async () => {
    const row = await list.locator('[aria-rowindex="3"]').boundingBox();
    const whole = await list.evaluate((each) => each.scrollHeight);
    return { row: Math.round(row?.height ?? 0), whole };
  };
  await list.getByRole('time').first().waitFor();
  const standard = await heights();
  const compact = page.getByRole('button', { name: 'Compact' });
  await compact.click();
  await eventually(async () => expect((await heights()).row).toBe(28));
  expect(standard.row).toBe(34);
  // The whole is as high as its rows, though few of them are in the page.
  const { whole } = await heights();
  expect(Math.round((standard.whole - whole) / 6)).toBeGreaterThanOrEqual(95);
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.reload();
  await list.getByRole('time').first().waitFor();
  expect([(await heights()).row, await compact.getAttribute('aria-pressed')]).toEqual([28, 'true']);
  await compact.click();
  await eventually(async () => expect((await heights()).row).toBe(34));
  expectSound();
}, 120_000);

test('theme and time zone are chosen and kept; until then the theme is that of the installation, and times are in UTC', async () => {
  await made('sources', { name: 'timed' });
  const event = await sent('timed', {});
  const page = await open('o/default/events?sourceId=timed', { timezoneId: 'Asia/Tokyo' });
  const theme = () => page.evaluate('document.documentElement.dataset.theme ?? "auto"');
  expect(await theme()).toBe('dark');
  await page.getByRole('button', { name: 'Theme: dark' }).click();
  expect(await theme()).toBe('auto');
  await page.getByRole('button', { name: 'Theme: auto' }).click();
  const { receivedAt } = (await suite.rest.send('GET', `/api/events/${event}`)).body;
  const time = page.getByRole('region', { name: 'events' }).getByRole('time').first();
  const inZone = (hours: number): string =>
    new Date(Date.parse(receivedAt) + hours * 3_600_000).toISOString().slice(0, 19).replace('T', ' ');
  await eventually(async () => expect(await time.getAttribute('title')).toContain(inZone(0)));
  await page.getByTitle('Time zone').click();
  await eventually(async () => expect(await time.getAttribute('title')).toContain(inZone(9)));
  await page.reload();
  await eventually(async () => expect(await time.getAttribute('title')).toContain(inZone(9)));
  expect(await theme()).toBe('light');
  expectSound();
}, 120_000);
