import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';
import { answerTo, loseAnswer } from './lost-answer.ts';

const suite = consoleSuite({ environment: { POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true' } });
const { made, sent, open, expectSound } = suite;
let receiver: Receiver;
/** Paths of the receiver that answer 503. */
const down = new Set(['/']);
beforeAll(async () => {
  receiver = await startReceiver((response, _n, { path }) => response.writeHead(down.has(path) ? 503 : 200).end());
});
afterAll(() => receiver?.close());

const retryPolicy = { maxRetries: 1, initialDelay: 100, maxDelay: 100, backoffMultiplier: 1 };
const read = async (path: string) => (await suite.rest.send('GET', `/api/${path}`)).body.data;
const deliveriesTo = (name: string, query = '') => read(`deliveries?destinationId=${name}${query}`);

/** A source, and a destination to which all of its events go. */
async function wired(name: string, destination = {}): Promise<string> {
  await made('sources', { name });
  const id = await made('destinations', { name, url: `${receiver.url}/${name}`, retryPolicy, ...destination });
  await made('routes', { name, sourceId: name, destinationIds: [name], circuitFailureThreshold: 100 });
  return id;
}

/** So many dead letters of it; the receiver is up afterwards. */
async function deadLetters(name: string, count: number): Promise<void> {
  down.add(`/${name}`);
  for (let n = 1; n <= count; n += 1) await sent(name, { n });
  await eventually(async () => expect(await deliveriesTo(name, '&status=dlq')).toHaveLength(count));
  down.delete(`/${name}`);
}

const selection = (page: Page) => page.getByRole('region', { name: 'Selected rows' });
const box = (page: Page, number: number) => page.locator('tbody input[type="checkbox"]').nth(number - 1);

test('what two of three destinations have failed to take is replayed from the list of the two', async () => {
  await made('sources', { name: 'regions' });
  for (const name of ['north', 'south', 'west']) {
    await made('destinations', { name, url: receiver.url, retryPolicy });
    await made('routes', { name: `regions to ${name}`, sourceId: 'regions', destinationIds: [name] });
  }
  await sent('regions', { total: 1 });
  await eventually(async () => expect(await deliveriesTo('north,south,west', '&status=dlq')).toHaveLength(3));
  down.delete('/');
  const page = await open('o/default/dead-letters?destinationId=north,south');
  await page.getByText('2 dead letters').waitFor();
  await page.getByRole('button', { name: 'Replay…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Replay 2 deliveries' }).click();
  await page.waitForURL('**/replays/rep_*');
  await page.getByText('Succeeded').first().waitFor();
  expect(await deliveriesTo('north', '&status=delivered')).toHaveLength(1);
  expect(await deliveriesTo('south', '&status=delivered')).toHaveLength(1);
  expect(await deliveriesTo('west', '&status=delivered')).toEqual([]);
  expectSound();
});

test('dead letters that are selected by keys and by mouse are sent again once, also when the answer is lost', async () => {
  await wired('picked');
  await deadLetters('picked', 4);
  const page = await open('o/default/dead-letters?destinationId=picked');
  await page.getByText('4 dead letters').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await selection(page).getByText('1 selected').waitFor();
  await page.keyboard.press('Escape');
  await box(page, 3).click({ modifiers: ['Shift'] });
  await selection(page).getByText('3 selected').waitFor();
  // A box that has the focus leaves the keys of the list to it.
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await selection(page).getByText('2 selected').waitFor();
  await page.keyboard.press('x');
  expect(await accessibilityViolations(page)).toEqual([]);
  await loseAnswer(page, '/deliveries/bulk-replay');
  await selection(page).getByRole('button', { name: 'Send again…' }).click();
  const question = page.getByRole('dialog', { name: 'Send deliveries again?' });
  await question.getByText('The receiver gets it even if it has it already.').waitFor();
  await question.getByRole('button', { name: 'Send 3 deliveries again' }).click();
  await question.getByText('It is unknown whether this was done.').waitFor();
  await question.getByRole('button', { name: 'Continue' }).click();
  await question.getByText('3 deliveries are sent again.').waitFor();
  await question.getByRole('link', { name: 'Show the new ones' }).waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await eventually(async () => expect(await deliveriesTo('picked', '&status=delivered')).toHaveLength(3));
  expect(await deliveriesTo('picked')).toHaveLength(7);
  await question.getByRole('button', { name: 'Close' }).click();
  await selection(page).waitFor({ state: 'detached' });
  await eventually(async () => expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('dead letters'));
});

test('selected dead letters are sent again once, also when the second press comes while the first is under way and the third after two minutes', async () => {
  await wired('slow');
  await deadLetters('slow', 2);
  const page = await open('o/default/dead-letters?destinationId=slow', { movesClock: true });
  await page.getByText('2 dead letters').waitFor();
  await page.getByRole('checkbox', { name: 'Select all rows that are listed' }).check();
  const keys: (string | undefined)[] = [];
  await page.route('**/deliveries/bulk-replay', async (route) => {
    keys.push(route.request().headers()['idempotency-key']);
    if (keys.length === 1) {
      await answerTo(route);
      await route.abort();
    } else if (keys.length === 2) {
      // The API refuses the key of another request as it refuses that of one under way.
      await route.continue({ postData: JSON.stringify({ ids: route.request().postDataJSON().ids.slice(1) }) });
    } else await route.continue();
  });
  await selection(page).getByRole('button', { name: 'Send again…' }).click();
  const question = page.getByRole('dialog', { name: 'Send deliveries again?' });
  await question.getByRole('button', { name: 'Send 2 deliveries again' }).click();
  await question.getByText('It is unknown whether this was done.').waitFor();
  await question.getByRole('button', { name: 'Continue' }).click();
  await question.getByText('This request changed nothing.').waitFor();
  await page.clock.fastForward(121_000);
  await question.getByRole('button', { name: 'Continue' }).click();
  await question.getByText('2 deliveries are sent again.').waitFor();
  expect(keys).toEqual([keys[0], keys[0], keys[0]]);
  await eventually(async () => expect(await deliveriesTo('slow', '&status=delivered')).toHaveLength(2));
  expect(await deliveriesTo('slow')).toHaveLength(4);
});

test('the report of a cancel stays when the list is empty after it, of selected rows and of the whole list', async () => {
  await wired('emptied', { enabled: false });
  for (const n of [1, 2]) await sent('emptied', { n });
  const waiting = () => deliveriesTo('emptied', '&status=pending');
  await eventually(async () => expect(await waiting()).toHaveLength(2));
  const page = await open('o/default/deliveries?destinationId=emptied&status=pending');
  await page.getByText('2 deliveries', { exact: true }).waitFor();
  await page.getByRole('checkbox', { name: 'Select all rows that are listed' }).check();
  await selection(page).getByRole('button', { name: 'Cancel…' }).click();
  const question = page.getByRole('dialog', { name: 'Cancel deliveries?' });
  await question.getByRole('button', { name: 'Cancel 2 deliveries' }).click();
  await page.getByText('No deliveries match').waitFor();
  await question.getByText('2 deliveries are cancelled.').first().waitFor();
  await question.getByRole('button', { name: 'Close' }).click();
  await selection(page).waitFor({ state: 'detached' });
  await eventually(async () => expect(await page.evaluate('document.activeElement.id')).toBe('main'));
  await sent('emptied', { n: 3 });
  await eventually(async () => expect(await waiting()).toHaveLength(1));
  await page.reload();
  await page.getByRole('button', { name: 'Cancel waiting…' }).click();
  const whole = page.getByRole('dialog', { name: 'Cancel deliveries that wait' });
  await whole.getByRole('button', { name: 'Cancel 1 delivery' }).click();
  await page.getByText('No deliveries match').waitFor();
  await whole.getByText('1 is cancelled.', { exact: false }).waitFor();
  await whole.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Cancel waiting…' }).waitFor({ state: 'detached' });
  expectSound();
});

test('the selected deliveries that wait are cancelled, and the report names the one that had ended by then', async () => {
  const held = await wired('held');
  await wired('kept', { enabled: false });
  await sent('held', { n: 0 });
  await eventually(async () => expect(await deliveriesTo('held', '&status=delivered')).toHaveLength(1));
  await suite.rest.send('PATCH', `/api/destinations/${held}`, { enabled: false });
  for (const name of ['held', 'kept']) await sent(name, { n: 1 });
  await eventually(async () => expect(await deliveriesTo('held,kept', '&status=pending')).toHaveLength(2));
  const page = await open('o/default/deliveries?destinationId=held,kept');
  await page.getByText('3 deliveries', { exact: true }).waitFor();
  await page.getByRole('checkbox', { name: 'Select all rows that are listed' }).check();
  await selection(page).getByRole('button', { name: 'Cancel…' }).click();
  const question = page.getByRole('dialog', { name: 'Cancel deliveries?' });
  await question.getByText('Each becomes a dead letter, which can be sent again.', { exact: false }).waitFor();
  await question.getByText('1 selected one is left alone: ended.').waitFor();
  await suite.rest.send('PATCH', `/api/destinations/${held}`, { enabled: true });
  await eventually(async () => expect(await deliveriesTo('held', '&status=delivered')).toHaveLength(2));
  await question.getByRole('button', { name: 'Cancel 2 deliveries' }).click();
  await question.getByText('1 is left alone.', { exact: false }).waitFor();
  await question.getByText('it had ended').waitFor();
  expect(await deliveriesTo('kept', '&status=dlq')).toHaveLength(1);
  expectSound();
});

test('a delivery is sent to another destination from its page, which opens the new one', async () => {
  await wired('first');
  const other = await wired('second');
  await deadLetters('first', 1);
  const [{ id }] = await deliveriesTo('first');
  const page = await open(`o/default/deliveries/${id}`);
  await page.getByRole('button', { name: 'Send again…' }).click();
  const question = page.getByRole('dialog', { name: 'Send it again?' });
  await question.getByLabel('Destination').selectOption(other);
  await question.getByText('The same payload goes to the chosen destination alone', { exact: false }).waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  let creates = 0;
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('/replays')) creates += 1;
  });
  await loseAnswer(page, '/replays');
  await question.getByRole('button', { name: 'Send again' }).click();
  await question.getByRole('alert').waitFor();
  // The second press gets the replay, and not what it has made.
  let lost = 0;
  const isOfOther = ({ pathname, searchParams }: URL): boolean =>
    pathname.endsWith('/deliveries') && searchParams.get('destinationId') === other;
  await page.route(
    isOfOther,
    async (route) => {
      lost += 1;
      await route.abort();
    },
    { times: 1 },
  );
  await question.getByRole('button', { name: 'Send again' }).click();
  await eventually(() => expect(lost).toBe(1));
  await question.getByRole('alert').waitFor();
  await question.getByRole('button', { name: 'Send again' }).click();
  await eventually(async () => expect(await deliveriesTo('second')).toHaveLength(1));
  const [again] = await deliveriesTo('second');
  await page.waitForURL(`**/deliveries/${again.id}`);
  expect(again).toMatchObject({ replayedFrom: id });
  await eventually(async () => expect(await deliveriesTo('second', '&status=delivered')).toHaveLength(1));
  expect(receiver.requests.filter(({ path }) => path === '/second')).toHaveLength(1);
  expect(creates).toBe(2);
});

test('a replay to another destination that sends nothing is refused, and does not open what was sent there before', async () => {
  await wired('third');
  const other = await wired('fourth');
  await deadLetters('third', 1);
  const [{ id }] = await deliveriesTo('third');
  await suite.rest.send('POST', '/api/replays', { what: 'deliveries', filter: { id: [id] }, toDestinationId: other });
  await eventually(async () => expect(await deliveriesTo('fourth', '&status=delivered')).toHaveLength(1));
  const page = await open(`o/default/deliveries/${id}`);
  await page.route(
    '**/replays',
    async (route) => {
      const response = await answerTo(route, { ...route.request().postDataJSON(), suspend: true });
      const path = `/api/replays/${JSON.parse(await response.text()).id}`;
      await suite.rest.send('PATCH', path, { cancel: true });
      await eventually(async () => expect((await suite.rest.send('GET', path)).body.phase).toBe('Cancelled'));
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  await page.getByRole('button', { name: 'Send again…' }).click();
  const question = page.getByRole('dialog', { name: 'Send it again?' });
  await question.getByLabel('Destination').selectOption(other);
  await question.getByRole('button', { name: 'Send again' }).click();
  await question.getByText('It was not sent: the replay was cancelled.').waitFor();
  expect(page.url()).toContain(id);
  expect(await deliveriesTo('fourth')).toHaveLength(1);
  await question.getByRole('button', { name: 'Send again' }).click();
  await eventually(async () => expect(await deliveriesTo('fourth')).toHaveLength(2));
  const [again] = await deliveriesTo('fourth');
  await page.waitForURL(`**/deliveries/${again.id}`);
});

test('the selected message that waits is cancelled, and one that was delivered is sent again with it', async () => {
  const applicationId = await made('webhook-applications', { name: 'Acme' });
  const endpointId = await made('webhook-endpoints', { applicationId, url: `${receiver.url}/acme`, retryDelays: [3600] });
  const eventTypeId = await made('event-types', { name: 'order.paid' });
  await made('webhook-subscriptions', { endpointId, eventTypeId });
  const messages = (query = '') => read(`outbound-messages?endpointId=${endpointId}${query}`);
  const send = () => suite.rest.send('POST', '/api/send-event', { eventType: 'order.paid', payload: {} });
  await send();
  await eventually(async () => expect(await messages('&status=success')).toHaveLength(1));
  down.add('/acme');
  await send();
  await eventually(async () => expect(await messages('&status=failed')).toHaveLength(1));
  down.delete('/acme');
  const page = await open(`o/default/messages?endpointId=${endpointId}`);
  await page.getByText('2 messages', { exact: true }).waitFor();
  await page.getByRole('checkbox', { name: 'Select all rows that are listed' }).check();
  await selection(page).getByRole('button', { name: 'Cancel…' }).click();
  const cancel = page.getByRole('dialog', { name: 'Cancel messages?' });
  await cancel.getByRole('button', { name: 'Cancel 1 message' }).click();
  await cancel.getByText('1 message is cancelled.').waitFor();
  await cancel.getByRole('button', { name: 'Close' }).click();
  await page.getByText('Dead letter', { exact: true }).waitFor();
  await page.getByRole('checkbox', { name: 'Select all rows that are listed' }).check();
  await selection(page).getByRole('button', { name: 'Send again…' }).click();
  const again = page.getByRole('dialog', { name: 'Send messages again?' });
  await again.getByRole('button', { name: 'Send 2 messages again' }).click();
  await again.getByText('2 messages are sent again.').waitFor();
  await eventually(async () => expect(await messages('&status=success')).toHaveLength(3));
  expectSound();
});
