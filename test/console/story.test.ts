import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';

const suite = consoleSuite();
const { made, sent, open, expectSound } = suite;
let receiver: Receiver;
let isDown = true;
beforeAll(async () => {
  receiver = await startReceiver((response, _number, { path }) => {
    const isMended = path === '/mended' && receiver.requests.filter((request) => request.path === path).length > 1;
    const fails = isDown && !isMended;
    response.statusCode = fails ? 503 : 200;
    response.setHeader('x-served-by', fails ? 'node-1' : 'node-2');
    response.end(fails ? 'closed for repairs' : 'ok');
  });
});
afterAll(() => receiver?.close());

const retryPolicy = { maxRetries: 1, initialDelay: 100, maxDelay: 100, backoffMultiplier: 1 };
const patient = { maxRetries: 3, initialDelay: 1_800_000, maxDelay: 1_800_000, backoffMultiplier: 1 };
const deliveriesOf = async (name: string) => (await suite.rest.send('GET', `/api/deliveries?destinationId=${name}`)).body.data;

test('the story of a delivery that waits counts down to its next attempt, and that of its event says where it waits', async () => {
  isDown = true;
  await made('sources', { name: 'waits' });
  await made('destinations', { name: 'waits', url: receiver.url, retryPolicy: patient });
  await made('routes', { name: 'waits', sourceId: 'waits', destinationIds: ['waits'] });
  const event = await sent('waits', { n: 1 });
  const delivery = await eventually('the first attempt', 30_000, async () => {
    const [found] = await deliveriesOf('waits');
    return found?.status === 'retrying' ? (found.id as string) : undefined;
  });
  const page = await open(`o/default/deliveries/${delivery}`, { movesClock: true });
  const planned = page.getByRole('region', { name: 'Next attempts' }).locator('dd');
  await planned.first().waitFor();
  const [next = Number.NaN, ...later] = await planned.locator('time').evaluateAll((all) => all.map((each) => Date.parse(each.dateTime)));
  expect(later).toEqual([next + 1_800_000, next + 3_600_000]);
  expect(await planned.allTextContents()).toEqual([
    expect.not.stringContaining('about'),
    expect.stringMatching(/^about .* \+30 min$/),
    expect.stringMatching(/^about .* \+30 min$/),
  ]);
  const timer = page.getByRole('timer');
  await timer.getByText('until the next attempt').waitFor();
  const secondsLeft = async (): Promise<number> => {
    const [, minutes, seconds] = /^(\d+):(\d\d)/.exec((await timer.textContent()) ?? '') ?? [];
    return Number(minutes) * 60 + Number(seconds);
  };
  const first = await secondsLeft();
  expect(first).toBeGreaterThan(700);
  await page.clock.fastForward(600_000);
  await eventually(async () => expect(await secondsLeft()).toBeLessThanOrEqual(first - 600));
  await page.goto(`${suite.standalone.url}/console/o/default/events/${event}`);
  await page.getByRole('listitem').filter({ hasText: 'Retrying' }).getByText('503', { exact: false }).first().waitFor();
  expectSound();
});

test('an outage is followed from the overview to the two attempts that differ, and is healed by a replay', async () => {
  isDown = true;
  await made('sources', { name: 'shop' });
  const destination = await made('destinations', { name: 'billing', url: receiver.url, retryPolicy });
  await made('destinations', { name: 'mended', url: `${receiver.url}/mended`, retryPolicy });
  await made('routes', { name: 'orders', sourceId: 'shop', destinationIds: ['billing', 'mended'] });
  const event = await sent('shop', { total: 20 });
  await eventually(async () => expect(await deliveriesOf('billing')).toMatchObject([{ status: 'dlq' }]));
  await eventually(async () => expect(await deliveriesOf('mended')).toMatchObject([{ status: 'delivered' }]));
  const [mended] = await deliveriesOf('mended');
  const page = await open('o/default/overview');
  await page.getByText(/^(One|Two|Three) of \d targets (is|are) failing\./).waitFor();
  await page.getByText('Attempts began to fail', { exact: false }).waitFor();
  const wrong = page.getByRole('row').filter({ hasText: 'billing' });
  await wrong.getByText('Receiver').waitFor();

  await page.goto(`${suite.standalone.url}/console/o/default/events/${event}`);
  await page
    .getByRole('link', { name: `…${mended.id.slice(-6)}` })
    .first()
    .click();
  await page.getByRole('link', { name: /^Compare attempt \d+ with attempt \d+$/ }).click();
  const comparison = page.getByRole('region', { name: 'Comparison' });
  const changed = (name: string) => comparison.getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact: true }) });
  for (const [name, before, after] of [
    ['status', '503', '200'],
    ['x-served-by', 'node-1', 'node-2'],
  ]) {
    const [was, is] = await changed(name ?? '')
      .getByRole('cell')
      .allTextContents();
    expect([name, was, is]).toEqual([name, before, after]);
  }
  expect(await changed('content-type').count()).toBe(0);

  isDown = false;
  await page.goto(`${suite.standalone.url}/console/o/default/dead-letters?destinationId=${destination}`);
  await page.getByRole('button', { name: 'Replay…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Replay 1 delivery' }).click();
  await page.waitForURL('**/replays/rep_*');
  await page.getByText('Succeeded').first().waitFor();
  const [original] = (await deliveriesOf('billing')).filter(({ replayedFrom }: { replayedFrom: string | null }) => replayedFrom === null);
  await page.goto(`${suite.standalone.url}/console/o/default/events/${event}`);
  const again = page.getByRole('listitem').filter({ hasText: 'sent again from' });
  await again.getByText('Delivered').waitFor();
  await again.getByTitle(original.id).waitFor();
  expectSound();
});

test('events that reached no route are chosen by both of their statuses, counted, and evaluated again by the routes of today', async () => {
  isDown = false;
  await made('sources', { name: 'early' });
  for (const name of ['late', 'later']) await made('destinations', { name, url: receiver.url });
  const event = await sent('early', { n: 1 });
  await eventually(async () => expect((await suite.rest.send('GET', `/api/events/${event}`)).body.status).toBe('no_routes'));
  await made('routes', { name: 'late', sourceId: 'early', destinationIds: ['late', 'later'] });
  const page = await open('o/default/events?sourceId=early');
  const replay = page.getByRole('button', { name: 'Replay…' });
  for (const status of ['no_routes', 'filtered']) {
    await page.getByRole('button', { name: 'Filter', exact: true }).click();
    await page.getByRole('combobox', { name: 'Value' }).selectOption(status);
    expect(await replay.count()).toBe(status === 'no_routes' ? 0 : 1);
    await page.getByRole('button', { name: 'Add' }).click();
    await replay.waitFor();
  }
  await page.waitForURL(/status=no_routes(,|%2C)filtered/);
  await page.locator('.chip', { hasText: 'status' }).getByText('No routes or Filtered').waitFor();
  await page.getByRole('checkbox', { name: `Select ${event}` }).check();
  await page.getByRole('region', { name: 'Selected rows' }).getByRole('button', { name: 'Replay…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Replay events' });
  await dialog.getByText('Current routes evaluate each again.', { exact: false }).waitFor();
  await dialog.getByText('2 deliveries to 2 targets', { exact: false }).waitFor();
  await dialog.getByRole('button', { name: 'Replay 2 deliveries' }).click();
  await page.waitForURL('**/replays/rep_*');
  await page.getByText('Succeeded').first().waitFor();
  const replayId = new URL(page.url()).pathname.split('/').at(-1);
  expect((await suite.rest.send('GET', `/api/replays/${replayId}`)).body.filter).toEqual({ id: [event] });
  for (const name of ['late', 'later']) {
    await eventually(async () => expect(await deliveriesOf(name)).toMatchObject([{ status: 'delivered' }]));
  }
  expectSound();
});
