import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';

const suite = consoleSuite({ environment: { POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true' } });
const { made, sent, open, expectSound } = suite;
const read = async (path: string) => (await suite.rest.send('GET', `/api/${path}`)).body;
const ids = { billing: '', event: '', delivery: '', endpoint: '', message: '', type: '' };
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver((response) => {
    response.statusCode = 503;
    response.end();
  });
  await made('sources', { name: 'Shop', slug: 'shop' });
  const retryPolicy = { maxRetries: 1, initialDelay: 100, maxDelay: 60_000, backoffMultiplier: 1 };
  ids.billing = await made('destinations', { name: 'Billing', url: receiver.url, retryPolicy });
  await made('routes', { name: 'Orders to billing', sourceId: 'shop', destinationIds: [ids.billing] });
  ids.event = await sent('shop', { total: 20 });
  const schema = JSON.stringify({ type: 'object', properties: { total: { type: 'number' } } });
  ids.type = await made('event-types', { name: 'order.paid', schema });
  const applicationId = await made('webhook-applications', { name: 'Acme' });
  const circuit = { circuitFailureThreshold: 1, circuitCooldownSeconds: 600 };
  ids.endpoint = await made('webhook-endpoints', { applicationId, url: `${receiver.url}/hooks`, ...circuit });
  await made('webhook-subscriptions', { endpointId: ids.endpoint, eventTypeId: ids.type });
  await suite.rest.send('POST', '/api/send-event', { eventType: 'order.paid', payload: { total: 20 } });
  await eventually('a dead letter and a message that is tried again', 60_000, async () => {
    ids.delivery = (await read('deliveries?status=dlq')).data[0].id;
    const [message] = (await read('outbound-messages?status=failed')).data;
    ids.message = message.id;
    return true;
  });
}, 240_000);
afterAll(() => receiver?.close());

function fact(drawer: Locator, name: string): Locator {
  return drawer.locator(`dt:text-is("${name}") + dd`);
}

async function drawerOf(kind: string, path: string): Promise<{ page: Page; drawer: Locator }> {
  const page = await open(`o/default/${path}`);
  const drawer = page.getByRole('complementary', { name: `Selected ${kind}` });
  await drawer.waitFor();
  return { page, drawer };
}

test('the drawer of an event names the route of each delivery, and that of a delivery its route and destination', async () => {
  const { page, drawer } = await drawerOf('event', `events?at=${ids.event}`);
  await drawer.getByRole('link', { name: 'Orders to billing' }).waitFor();
  await page.goto(`${suite.standalone.url}/console/o/default/deliveries?at=${ids.delivery}`);
  const delivery = page.getByRole('complementary', { name: 'Selected delivery' });
  await fact(delivery, 'Route').getByRole('link', { name: 'Orders to billing' }).waitFor();
  await fact(delivery, 'Destination').getByRole('link', { name: 'Billing' }).waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  expectSound();
});

test('the drawer of a message has its state, and names its application and endpoint', async () => {
  const { page, drawer } = await drawerOf('message', `messages?at=${ids.message}`);
  await drawer.getByText('Retrying', { exact: true }).waitFor();
  expect(await fact(drawer, 'Type').textContent()).toBe('order.paid');
  await fact(drawer, 'Application').getByRole('link', { name: 'Acme' }).waitFor();
  await fact(drawer, 'Endpoint')
    .getByRole('link', { name: `${receiver.url}/hooks` })
    .waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  expectSound();
});

test('a message that is tried again is not shown as failed on the page of its endpoint, and waits on the overview', async () => {
  const page = await open(`o/default/targets/${ids.endpoint}`);
  const row = page.getByRole('region', { name: 'Messages', exact: true }).locator('tbody tr').first();
  await row.getByText('Retrying', { exact: true }).waitFor();
  await page.goto(`${suite.standalone.url}/console/o/default/overview`);
  const waiting = page.locator('.figures > div').filter({ hasText: 'Waiting now' });
  await waiting.getByText(/, 1 to endpoints$/).waitFor();
  await waiting.getByRole('link', { name: '1', exact: true }).click();
  await page.waitForURL('**/messages?status=pending*');
  await page.getByText(/^1 message\b/).waitFor();
  expectSound();
});

test('the facts of a destination with one retry have its one delay, and the dead letters say that all are of one destination', async () => {
  const { page, drawer } = await drawerOf('target', `targets?at=${ids.billing}`);
  expect(await fact(drawer, 'Retries').textContent()).toMatch(/^1, after 100 ms; /);
  await page.goto(`${suite.standalone.url}/console/o/default/dead-letters`);
  const answer = page.getByRole('region', { name: 'What do I have to recover?' });
  await answer.getByText('1 delivery is a dead letter, to Billing (1).').waitFor();
  await answer.getByText('Given up because their attempts failed.').waitFor();
  await page.getByText(/^1 dead letter\b/).waitFor();
  expectSound();
});

test('paths in the schema of an event type begin with schema', async () => {
  const { drawer } = await drawerOf('event type', `event-types?at=${ids.type}`);
  await drawer.getByRole('treeitem').filter({ hasText: '"total"' }).first().click();
  await drawer.getByText('schema.properties.total', { exact: true }).waitFor();
  expectSound();
});

test('charts of a target to which nothing was sent report it', async () => {
  const idle = await made('destinations', { name: 'Idle', url: receiver.url });
  const page = await open(`o/default/targets/${idle}`);
  await page.getByText('Nothing was attempted.', { exact: true }).waitFor();
  await page.getByText('Nothing was measured.', { exact: true }).waitFor();
  expectSound();
});

test('the page of an event that is no longer stored says why that may be', async () => {
  const page = await open(`o/default/events/${ids.event.slice(0, -1)}${ids.event.endsWith('a') ? 'b' : 'a'}`);
  await page.getByText('what has ended is removed once its retention is over.', { exact: false }).waitFor();
  expectSound();
});

test('the report of a replay has its filter by names', async () => {
  const filter = { destinationId: ids.billing, status: ['delivered'] };
  const replay = await made('replays', { name: 'again', what: 'deliveries', filter, dryRun: true });
  const page = await open(`o/default/replays/${replay}`);
  const main = page.getByRole('main');
  await fact(main, 'Destination').getByText('Billing', { exact: true }).waitFor();
  await fact(main, 'Status').getByText('Delivered', { exact: true }).waitFor();
  expectSound();
});
