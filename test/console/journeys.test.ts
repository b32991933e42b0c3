import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';
import { expectNoSideScroll } from './fitting.ts';

const script = '<img src=x onerror="document.title=\'taken\'"><script>document.title="taken"</script>';

interface AttemptRecord {
  attemptNumber: number;
  detail: { phases: Record<'dnsMs' | 'connectMs' | 'tlsMs' | 'firstByteMs' | 'totalMs', number | null> };
}

const suite = consoleSuite();
const { made, sent, open, expectSound } = suite;
let receiver: Receiver;
let isDown = false;
beforeAll(async () => {
  receiver = await startReceiver((response) => {
    response.statusCode = isDown ? 503 : 200;
    response.setHeader('x-served-by', isDown ? 'node-1' : 'node-2');
    response.end(isDown ? script : 'ok');
  });
});
afterEach(() => {
  isDown = false;
});
afterAll(() => receiver?.close());

describe('a console on a machine where nothing has happened', () => {
  test('a console on a machine where nothing has happened says how the first event is sent, and becomes the overview when it has come', async () => {
    const page = await open('o/default/overview');
    await page.getByRole('heading', { name: 'Send the first event' }).waitFor();
    await page.getByText('"name": "shop"', { exact: false }).waitFor();
    await made('sources', { name: 'earliest' });
    await page.getByText(/^curl http:.*\/ingest\/default\/earliest/).waitFor();
    await page.getByText('Waiting for the first event').waitFor();
    await sent('earliest', { type: 'order.paid', total: 900 });
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByRole('region', { name: 'Is anything wrong?' }).getByText('Nothing is wrong.').waitFor();
    expectSound();
  });

  test('a console on a machine where nothing has happened opens without a login, and its first event shows on the live screen by itself', async () => {
    await made('sources', { name: 'first' });
    const page = await open('o/default/live?topic=events');
    await page.getByText('Connected').waitFor();
    expect(await page.evaluate('document.getAnimations().length')).toBeGreaterThan(0);
    const id = await sent('first', { hello: 'world' });
    await page.getByText('Received').first().waitFor();
    await page.getByTitle(id).waitFor();
    await page.keyboard.press('j');
    await page.waitForURL((url) => url.searchParams.get('id') === id && url.searchParams.has('at'));
    const drawer = page.getByRole('complementary', { name: 'Selected event' });
    await drawer.waitFor();
    // The row itself is gone from a page that is opened later.
    await page.reload();
    await drawer.waitFor();
    await page.getByText('Nothing has happened since you opened this page').waitFor();
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'detached' });
    expect(new URL(page.url()).search).toBe('?topic=events');
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
      const { body } = await suite.rest.send('GET', '/api/deliveries?status=dlq');
      return body.data.length === 1;
    });
  }, 120_000);

  test('an outage is shown from the event to the attempts, and what a route expected instead', async () => {
    const page = await open(`o/default/events/${event}`);
    await page.getByText('payload.total gt 1000', { exact: true }).waitFor();
    await page.getByText('125.5').first().waitFor();
    const dead = page.getByRole('listitem').filter({ hasText: 'Dead letter' });
    await dead.getByRole('link', { name: /^msg_/ }).click();
    await page.waitForURL('**/deliveries/msg_*');
    await page.getByText('because all its attempts failed').first().waitFor();
    const request = page.locator('section.panel').filter({ has: page.getByRole('heading', { name: 'Request' }) });
    expect(await request.locator('dt:text-is("Body") + dd').textContent()).toBe('the payload');
    expect(await request.locator('dt:text-is("Signatures") + dd').textContent()).toBe('none');
    const { body } = await suite.rest.send('GET', `/api/deliveries/${new URL(page.url()).pathname.split('/').at(-1)}`);
    const inWords = body.attemptDetails.map(({ attemptNumber, detail: { phases } }: AttemptRecord) => {
      const times = [phases.dnsMs, phases.connectMs, phases.tlsMs, phases.firstByteMs];
      const words = ['DNS', 'Connect', 'TLS', 'First byte'].map((word, i) =>
        times[i] === null ? `${word} not reached` : `${word} ${times[i]} ms`,
      );
      return { number: attemptNumber, words: `${words.join(', ')}, in all ${phases.totalMs} ms` };
    });
    expect(inWords).toHaveLength(2);
    const named = inWords.map(({ number, words }: { number: number; words: string }) => `Attempt ${number}: ${words}.`).join(' ');
    await page.getByRole('img', { name: named, exact: true }).waitFor();
    const response = page.locator('section.panel').filter({ has: page.getByRole('heading', { name: 'Response', exact: true }) });
    expect(await response.locator('dt:text-is("Phases") + dd').textContent()).toBe(inWords[1].words);
    await page.getByRole('link', { name: 'Compare attempt 2 with attempt 1' }).click();
    await page.waitForURL('**with=1**');
    await page.getByRole('region', { name: 'Comparison' }).waitFor();
    expectSound();
  });

  test('an outage shows what others wrote as text, whatever they wrote', async () => {
    const page = await open(`o/default/events/${event}`);
    await page.getByText('onerror').first().waitFor();
    const { body } = await suite.rest.send('GET', '/api/deliveries?status=dlq');
    await page.goto(`${suite.standalone.url}/console/o/default/deliveries/${body.data[0].id}`);
    await page.getByText('onerror').first().waitFor();
    expect(await page.title()).not.toContain('taken');
    expect(await page.locator('img').count()).toBe(0);
    expectSound();
  });

  test('an outage ends with a delivery that is sent again, whose story opens', async () => {
    const { body } = await suite.rest.send('GET', '/api/deliveries?status=dlq');
    const page = await open(`o/default/deliveries/${body.data[0].id}`);
    await page.getByRole('button', { name: 'Send again…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click();
    await page.waitForURL((url) => url.pathname.includes('/deliveries/msg_') && !url.pathname.endsWith(body.data[0].id));
    await page.getByText('Delivered').first().waitFor();
    expectSound();
  });

  test('an outage is recovered by a filter: counted, then sent again, with a report', async () => {
    const page = await open('o/default/dead-letters?routeId=orders-to-billing');
    await page.getByRole('region', { name: 'What do I have to recover?' }).waitFor();
    await page.getByRole('button', { name: 'Replay…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replay 1 delivery' }).click();
    await page.waitForURL('**/replays/rep_*');
    await page.getByText('Succeeded').first().waitFor();
    await page.getByText('1 a second').or(page.getByText('50 a second')).first().waitFor();
    expectSound();
  });

  test('several ids that are pasted, one in a line, open with what became of each', async () => {
    const { body } = await suite.rest.send('GET', '/api/deliveries?routeId=orders-to-billing');
    const [delivery] = body.data;
    const absent = 'msg_aaaaaaaaaaaaaaaaaaaaaaaaaa';
    const page = await open('o/default/overview');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').focus();
    await page.evaluate(`{
      const clipboardData = new DataTransfer();
      clipboardData.setData('text', ${JSON.stringify([event, delivery.id, absent].join('\n'))});
      document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
    }`);
    await page.getByRole('option', { name: '3 ids what became of each' }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/ids?ids=*');
    await page.getByText('All are read.').waitFor();
    const rowOf = (id: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name: id, exact: true }) });
    await rowOf(event).getByText('event', { exact: true }).waitFor();
    await rowOf(delivery.id).getByText('delivery', { exact: true }).waitFor();
    await rowOf(absent).locator('.c-bad').waitFor();
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.setViewportSize({ width: 320, height: 700 });
    await expectNoSideScroll(page, 320);
    await rowOf(event).getByRole('link', { name: event, exact: true }).click();
    await page.waitForURL(`**/events/${event}`);
    expectSound();
  });

  test('lists keep their filters and the selected row in the address', async () => {
    const page = await open('o/default/deliveries');
    await page.getByRole('button', { name: 'Filter', exact: true }).click();
    await page.getByRole('combobox', { name: 'Value' }).selectOption('dlq');
    await page.getByRole('button', { name: 'Add' }).click();
    await page.waitForURL('**status=dlq**');
    await page
      .locator('.table-foot')
      .getByText(/^1 delivery/)
      .waitFor();
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

/** Presses Tab until an element with this accessible name has the focus. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let presses = 0; presses < 80; presses += 1) {
    await page.keyboard.press('Tab');
    if (name.test(String(await page.evaluate('document.activeElement.getAttribute("aria-label") ?? document.activeElement.innerText'))))
      return;
  }
  throw new Error(`Tab comes to nothing like ${name}`);
}

test('the keyboard alone leads from the address to the story of an event, and sends a delivery again', async () => {
  await made('sources', { name: 'keys' });
  await made('destinations', { name: 'keys', url: receiver.url });
  await made('routes', { name: 'keys', sourceId: 'keys', destinationIds: ['keys'] });
  const event = await sent('keys', { hello: 'keyboard' });
  await eventually(async () => expect((await suite.rest.send('GET', `/api/events/${event}`)).body.status).toBe('delivered'));
  const page = await open('o/default/events?sourceId=keys');
  await page
    .locator('.table-foot')
    .getByText(/^1 event/)
    .waitFor();
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement.innerText')).toBe('Skip to the content');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement.closest("main") !== null')).toBe(true);
  await page.keyboard.press('j');
  await page.waitForURL('**at=evt_**');
  await tabTo(page, /^Open story$/);
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/events/${event}`);
  await page.getByRole('link', { name: /^msg_/ }).waitFor();
  await tabTo(page, /^msg_/);
  await page.keyboard.press('Enter');
  await page.waitForURL('**/deliveries/msg_*');
  const before = page.url();
  await page.getByRole('button', { name: 'Send again…' }).waitFor();
  await tabTo(page, /Send again…/);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Send it again?' }).waitFor();
  await eventually(async () => expect(await page.evaluate('document.activeElement.closest("[role=dialog]") !== null')).toBe(true));
  if ((await page.evaluate('document.activeElement.innerText')) !== 'Send again') await tabTo(page, /^Send again$/);
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname.includes('/deliveries/msg_') && url.href !== before);
  await page.getByText('Delivered').first().waitFor();
  expectSound();
});

test('a user who sets up a source sees within seconds why its sender is refused, with what to do, and never the signature', async () => {
  const source = await made('sources', { name: 'signed', provider: 'stripe', signingSecret: 'a-long-random-secret' });
  const page = await open(`o/default/sources?at=${source}`);
  await page.getByText('Stripe-Signature: t=<seconds>,v1=<hex>', { exact: false }).waitFor();
  await page.getByText('the secret of the endpoint, as it is shown, which Stripe makes').waitFor();
  expect(await page.getByRole('link', { name: 'Stripe', exact: true }).getAttribute('href')).toMatch(/^https:\/\/docs\.stripe\.com\//);
  const failed = page.getByRole('region', { name: 'Failed signatures' });
  await failed.getByText('None in the last 24 hours.').waitFor();
  const send = async (headers: Record<string, string>): Promise<number> =>
    (await fetch(`${suite.standalone.url}/ingest/default/signed`, { method: 'POST', body: '{}', headers })).status;
  expect(await send({ 'user-agent': '<b>Shop</b>/1' })).toBe(401);
  const signature = 'abcdef0123456789'.repeat(4);
  const old = Math.floor(Date.now() / 1000) - 4000;
  expect(await send({ 'stripe-signature': `t=${old},v1=${signature}` })).toBe(401);
  await failed.getByText('The request has no header stripe-signature.').waitFor();
  await failed.getByText(/^1 request refused, the last one .* from 127\.0\.0\.1 \(<b>Shop<\/b>\/1\)$/).waitFor();
  await failed.getByText(/^The time that was signed is 40\d\d s old; 300 s are allowed\.$/).waitFor();
  await failed.getByText('Synchronize the clock of the sender.').waitFor();
  await failed.getByText(/^2 requests, the first /).waitFor();
  expect(await page.content()).not.toContain(signature);
  const unchecked = await made('sources', { name: 'unchecked' });
  await page.goto(`${suite.standalone.url}/console/o/default/sources?at=${unchecked}`);
  await page.getByText('Send a test event').waitFor();
  expect(await failed.count()).toBe(0);
  expectSound();
});

test('the calendar shows when cron jobs run and have run, by day and with what runs often apart, and leads to a job with its next ten runs', async () => {
  const daily = await made('cron', { name: '<b>Daily</b>', cronExpression: '30 12 * * *', url: 'https://reports.example/run' });
  await made('cron', { name: 'Heartbeat', cronExpression: '* * * * *', url: 'https://reports.example/beat' });
  const page = await open('o/default/cron?at=');
  await page.getByRole('button', { name: 'Calendar' }).click();
  await eventually(() => expect(page.url()).toContain('view=calendar'));
  await page.getByRole('link', { name: 'Later' }).click();
  const days = page.locator('.days > section');
  await eventually(async () => expect(await days.getByText('12:30').count()).toBe(7));
  expect(await days.getByText('Heartbeat').count()).toBe(0);
  expect(await page.locator('.often').textContent()).toContain('Heartbeat');
  await days.first().getByRole('link', { name: '<b>Daily</b>' }).click();
  await eventually(() => expect(page.url()).toContain(`at=${daily}`));
  const drawer = page.getByRole('complementary', { name: 'Selected cron job' });
  await eventually(async () => expect(await drawer.getByText(/^\d{4}-\d\d-\d\d 12:30$/).count()).toBe(10));
  expectSound();

  // What has run is in its days, with how it went, also weeks later.
  const ran = await made('cron', { name: 'Monthly', cronExpression: '0 0 1 1 *', url: receiver.url });
  expect((await suite.rest.send('POST', `/api/cron/${ran}/trigger`, {})).body.execution.status).toBe('success');
  const today = new Date().toISOString().slice(0, 10);
  const entry = page.getByRole('region', { name: today }).getByRole('listitem').filter({ hasText: 'Monthly' });
  await page.goto(`${suite.standalone.url}/console/o/default/cron?view=calendar`);
  await entry.getByText('Succeeded').waitFor();
  await page.clock.setFixedTime(Date.now() + 8 * 86_400_000);
  await page.goto(`${suite.standalone.url}/console/o/default/cron?view=calendar`);
  await page.getByRole('link', { name: 'Later' }).waitFor();
  expect(await entry.count()).toBe(0);
  await page.getByRole('link', { name: 'Earlier' }).click();
  await eventually(() => expect(page.url()).toContain('from='));
  await page.getByRole('link', { name: 'Earlier' }).click();
  await entry.getByText('Succeeded').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  expectSound();
});

test('the calendar shows of no day that nothing ran where histories do not reach, and asks again for those that could not be read', async () => {
  await made('cron', { name: 'Frequent', cronExpression: '0 0 1 1 *', url: receiver.url });
  const page = await open('o/default/overview');
  let isAway = true;
  const dayMs = 86_400_000;
  await page.route('**/executions?*', async (route) => {
    if (isAway) return await route.fulfill({ status: 503, json: { message: 'The histories are away.' } });
    const startedAt = (i: number): string => new Date(Date.now() - dayMs - i * 60_000).toISOString();
    const executions = Array.from({ length: 100 }, (_, i) => ({ id: `run_${i}`, status: 'success', started_at: startedAt(i) }));
    return await route.fulfill({ json: { executions } });
  });
  const from = new Date(Date.now() - 7 * dayMs).toISOString().slice(0, 10);
  await page.goto(`${suite.standalone.url}/console/o/default/cron?view=calendar&from=${from}`);
  const failure = page.getByRole('alert').filter({ hasText: 'The histories are away.' });
  await failure.waitFor({ timeout: 60_000 });
  expect(await page.getByText('no run').count()).toBe(0);
  expect(await page.getByText('No run in these days').count()).toBe(0);
  isAway = false;
  await failure.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('listitem').filter({ hasText: 'Frequent' }).getByText('ran at least 100 times').waitFor();
  await failure.waitFor({ state: 'detached' });
  await page.getByText(/^The API keeps the last 100 runs of a job\. Before .+ some are missing\.$/).waitFor();
  expect(await page.getByText('no run').count()).toBe(0);
});

test('a list that stays open over midnight shows the dates of its times', async () => {
  await made('sources', { name: 'midnight' });
  await sent('midnight', { hello: 'yesterday' });
  const page = await open('o/default/events?sourceId=midnight');
  const time = page.getByRole('region', { name: 'events' }).getByRole('time');
  await eventually(async () => expect(await time.textContent()).toMatch(/^\d\d:\d\d:/));
  await page.clock.setFixedTime(Date.now() + 86_400_000);
  await eventually('the list to be read again', 30_000, async () => /^\d{4}-\d\d-\d\d \d\d:\d\d:/.test((await time.textContent()) ?? ''));
  expectSound();
});

test('scrolling through a list renders the rows that come into view, and those that stay not again', async () => {
  const rows = 300;
  await made('sources', { name: 'many' });
  await Promise.all(Array.from({ length: rows }, (_none, number) => sent('many', { number })));
  const page = await open('o/default/events?sourceId=many');
  const list = page.getByRole('region', { name: 'events' });
  await list.getByRole('time').first().waitFor();
  // The time of a row is formatted when the row is rendered.
  await page.evaluate(`{
    const format = Date.prototype.toISOString;
    globalThis.formatted = 0;
    Date.prototype.toISOString = function () {
      globalThis.formatted += 1;
      return format.call(this);
    };
  }`);
  await list.hover();
  await eventually('the end of the list', 60_000, async () => {
    await page.mouse.wheel(0, 100);
    return (await list.locator(`[aria-rowindex="${rows + 1}"]`).count()) === 1;
  });
  expect(Number(await page.evaluate('formatted'))).toBeLessThan(6 * rows);
  expectSound();
});
