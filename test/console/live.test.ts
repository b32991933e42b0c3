import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { consoleSuite } from './console-suite.ts';

const suite = consoleSuite();
const { made, sent, open, expectSound } = suite;

test('a list that is scrolled stays as it is and counts what comes, until the reader requests the newest', async () => {
  for (const name of ['read', 'unread']) await made('sources', { name });
  const page = await open('o/default/live?topic=events&sourceId=read', { viewport: { width: 1280, height: 700 } });
  await page.getByText('Connected').waitFor();
  // With those that follow, no more than the 50 rows that a stream sends at once: it leaves none out.
  for (let number = 0; number < 40; number += 1) await sent('read', { number });
  const table = page.getByRole('table');
  const rowCount = async (): Promise<number> => Number(await table.getAttribute('aria-rowcount')) - 1;
  await eventually(async () => expect(await rowCount()).toBe(40));
  const list = page.getByRole('region', { name: 'Newest first' });
  const scrolledBy = async (): Promise<number> =>
    Number(await page.evaluate('document.querySelector(\'[aria-label="Newest first"]\').scrollTop'));
  await list.hover();
  await page.mouse.wheel(0, 400);
  await eventually(async () => expect(await scrolledBy()).toBe(400));
  const place = await scrolledBy();
  const shown = list.locator('[aria-rowindex="20"]');
  const before = { text: await shown.textContent(), box: await shown.boundingBox() };
  await sent('unread', { number: 1 });
  const first = await sent('read', { number: 40 });
  const waiting = page.getByRole('button', { name: /more/ });
  await waiting.getByText('1 more', { exact: true }).waitFor();
  for (let number = 41; number < 47; number += 1) await sent('read', { number });
  await waiting.getByText('7 more', { exact: true }).waitFor();
  expect({ text: await shown.textContent(), box: await shown.boundingBox() }).toEqual(before);
  expect({ place: await scrolledBy(), rows: await rowCount() }).toEqual({ place, rows: 40 });
  await waiting.click();
  await list.getByTitle(first).waitFor();
  await waiting.waitFor({ state: 'detached' });
  expect({ place: await scrolledBy(), rows: await rowCount() }).toEqual({ place: 0, rows: 47 });
  // Back at the top, the list resumes by itself; the same where the reader scrolls there.
  const next = await sent('read', { number: 47 });
  await list.getByTitle(next).waitFor();
  await page.mouse.wheel(0, 400);
  await eventually(async () => expect(await scrolledBy()).toBe(400));
  const last = await sent('read', { number: 48 });
  await waiting.getByText('1 more', { exact: true }).waitFor();
  await list.hover();
  await page.mouse.wheel(0, -1000);
  await list.getByTitle(last).waitFor();
  await waiting.waitFor({ state: 'detached' });
  // A row opens beside the list, and the event's story from there.
  await list
    .getByRole('row')
    .filter({ has: page.getByTitle(first) })
    .getByText('Received')
    .click();
  await page.getByRole('link', { name: 'Open story' }).click();
  await page.waitForURL(`**/events/${first}`);
  expectSound();
}, 120_000);

test('Live shows some of 500 events a second, counts the others, and still answers a click', async () => {
  await made('sources', { name: 'burst' });
  const page = await open('o/default/live?topic=events&sourceId=burst');
  await page.getByText('Connected').waitFor();
  let sentEvents = 0;
  const begunAt = Date.now();
  const sender = async (): Promise<void> => {
    while (Date.now() - begunAt < 10_000) {
      // At most 500 a second.
      if (sentEvents < (Date.now() - begunAt) / 2) {
        sentEvents += 1;
        await sent('burst', { number: sentEvents });
      } else await sleep(2);
    }
  };
  const sending = Promise.all(Array.from({ length: 16 }, sender));
  await page.getByText('rows left out').waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Resume' }).click();
  await sending;
  const seconds = Math.ceil((Date.now() - begunAt) / 1000);
  const shown = await eventually('all rows to be shown or counted', 60_000, async () => {
    const rows = Number(await page.getByRole('table').getAttribute('aria-rowcount')) - 1;
    const leftOut = /([\d,]+) rows left out/.exec((await page.getByText('rows left out').textContent()) ?? '')?.[1] ?? '';
    return rows + Number(leftOut.replaceAll(',', '')) === sentEvents ? rows : undefined;
  });
  expect(shown).toBeGreaterThan(0);
  expect(shown).toBeLessThanOrEqual(50 * (seconds + 2));
  expect(shown).toBeLessThan(sentEvents);
  expectSound();
});
