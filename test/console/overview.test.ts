import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';

const suite = consoleSuite({ environment: { POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true' } });
const { made, sent, open, expectSound } = suite;
let receiver: Receiver;
let isDown = false;
beforeAll(async () => {
  receiver = await startReceiver((response) => {
    response.statusCode = isDown ? 503 : 200;
    response.end();
  });
});
afterAll(() => receiver?.close());

const read = async (path: string) => (await suite.rest.send('GET', `/api/${path}`)).body;

test('the overview shows which cron jobs failed until they succeed, and how many workers are alive', async () => {
  const job = await made('cron', { name: 'Reports', cronExpression: '0 0 1 1 *', url: receiver.url });
  const run = async (): Promise<string> => (await suite.rest.send('POST', `/api/cron/${job}/trigger`, {})).body.execution.status;
  isDown = true;
  expect(await run()).toBe('failed');
  isDown = false;
  const page = await open('o/default/overview');
  const row = page.getByRole('region', { name: 'Failed cron jobs' }).getByRole('row').filter({ hasText: 'Reports' });
  await row.waitFor();
  const verdict = page.getByRole('region', { name: 'Is anything wrong?' });
  await verdict.getByText('The last run of 1 cron job failed.').waitFor();
  await page.locator('.figures').getByText('Workers alive').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await row.getByRole('link', { name: 'Reports' }).click();
  await eventually(() => expect(page.url()).toContain(`at=${job}`));
  expect(await run()).toBe('success');
  // Without a source the overview would be the page of the first steps.
  await made('sources', { name: 'orders' });
  await sent('orders', { n: 1 });
  await page.goto(`${suite.standalone.url}/console/o/default/overview`);
  await verdict.getByText('Nothing is wrong.').waitFor();
  expect(await row.count()).toBe(0);
  const installation = await read('installation');
  for (const worker of installation.workers.data) worker.isAlive = false;
  await page.route('**/api/**/installation', (route) => route.fulfill({ json: installation }));
  await page.goto(`${suite.standalone.url}/console/o/default/overview`);
  await verdict.getByText('No worker is alive: nothing is delivered until one starts.').waitFor();
  expectSound();
}, 120_000);

test('the page of an endpoint has its attempts, its latency and the openings of its circuit, and says what waits for it', async () => {
  const eventTypeId = await made('event-types', { name: 'order.paid' });
  const applicationId = await made('webhook-applications', { name: 'Acme' });
  const circuit = { circuitFailureThreshold: 1, circuitCooldownSeconds: 600 };
  const endpoint = await made('webhook-endpoints', { applicationId, url: receiver.url, ...circuit });
  await made('webhook-subscriptions', { endpointId: endpoint, eventTypeId });
  isDown = true;
  const send = () => suite.rest.send('POST', '/api/send-event', { eventType: 'order.paid', payload: {} });
  expect((await send()).status).toBe(201);
  await eventually(async () => expect((await read(`webhook-endpoints/${endpoint}`)).data.circuitState).toBe('open'), 30_000);
  isDown = false;
  expect((await send()).status).toBe(201);
  const page = await open('o/default/overview');
  await page.getByRole('region', { name: 'What is wrong' }).getByText('messages wait until then').waitFor();
  await page.goto(`${suite.standalone.url}/console/o/default/targets/${endpoint}`);
  await page.getByRole('img', { name: '1 circuit opened in the last 24 hours.' }).waitFor();
  await page.getByRole('img', { name: /^Attempts of the last 24 hours: 0 delivered, 1 tried again, 0 failed\.$/ }).waitFor();
  const facts = page.getByRole('region', { name: 'Facts' });
  await facts.getByText(/^2, oldest /).waitFor();
  await page.getByRole('heading', { name: 'Until the next probe' }).waitFor();
  await page.getByRole('img', { name: /^[1-9]\d* of 600 seconds until the next probe$/ }).waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.getByRole('button', { name: '1 h', exact: true }).click();
  await page.getByRole('img', { name: '1 circuit opened in the last hour.' }).waitFor();
  await page.getByRole('button', { name: 'Reset circuit…' }).click();
  await page.getByRole('button', { name: 'Reset circuit', exact: true }).click();
  await page.getByRole('img', { name: /^Attempts of the last hour: [12] delivered, / }).waitFor();
  expectSound();
}, 120_000);

test('an attempt is copied as a request of curl, with what was masked marked', async () => {
  await made('sources', { name: 'shop' });
  const headers = { 'x-team': "o'brien", authorization: 'Bearer a-secret-token' };
  const retryPolicy = { maxRetries: 1, initialDelay: 100, maxDelay: 100, backoffMultiplier: 1 };
  const destination = await made('destinations', { name: 'billing', url: receiver.url, method: 'PUT', headers, retryPolicy });
  await made('routes', { name: 'all', sourceId: 'shop', destinationIds: ['billing'] });
  isDown = true;
  const event = await sent('shop', { n: 1 });
  const delivery = await eventually(
    'the dead letter',
    30_000,
    async () => (await read(`deliveries?destinationId=${destination}&status=dlq`)).data[0]?.id as string | undefined,
  );
  isDown = false;
  const page = await open(`o/default/deliveries/${delivery}`, { permissions: ['clipboard-read', 'clipboard-write'] });
  await page.getByRole('button', { name: 'Copy as curl' }).click();
  await page.getByText('Copied').waitFor();
  const copied: unknown = await page.evaluate('navigator.clipboard.readText()');
  expect(copied).toContain(`/events/${event}/payload' -H "x-api-key: $KEY" -o payload`);
  expect(copied).toContain(`curl -X PUT '${receiver.url}'`);
  expect(copied).toContain("-H 'x-team: o'\\''brien'");
  expect(copied).not.toContain('a-secret-token');
  expectSound();
}, 120_000);

test('a replay that runs is on the overview, and is suspended there, resumed on its page and cancelled after a question', async () => {
  await made('sources', { name: 'many' });
  await made('destinations', { name: 'sink', url: receiver.url });
  await made('routes', { name: 'many', sourceId: 'many', destinationIds: ['sink'] });
  await Promise.all(Array.from({ length: 90 }, (_none, n) => sent('many', { n })));
  await eventually(async () => expect((await read('deliveries?routeId=many&status=delivered&limit=100')).data).toHaveLength(90), 60_000);
  const id = await made('replays', {
    name: 'slow',
    what: 'deliveries',
    filter: { routeId: 'many', status: ['delivered'] },
    ratePerSecond: 1,
  });
  const phase = async (): Promise<string> => (await read(`replays/${id}`)).phase;
  const page = await open('o/default/overview');
  const panel = page.getByRole('region', { name: 'Replay slow' });
  await panel.getByRole('button', { name: 'Suspend' }).click();
  await eventually(async () => expect(await phase()).toBe('Suspended'), 60_000);
  await panel.waitFor({ state: 'detached' });
  await page.goto(`${suite.standalone.url}/console/o/default/replays/${id}`);
  await page.getByRole('button', { name: 'Resume' }).waitFor();
  // Nothing has failed, so nothing is red.
  expect(
    await page
      .locator('.legend .state')
      .filter({ hasText: /^failed$/ })
      .getAttribute('class'),
  ).toBe('state is-idle');
  await page.getByRole('button', { name: 'Resume' }).click();
  await eventually(async () => expect(await phase()).toBe('Running'), 60_000);
  await page.getByRole('button', { name: 'Cancel…' }).click();
  const question = page.getByRole('dialog', { name: 'Cancel replay slow?' });
  await question.getByText('A cancelled replay cannot be resumed', { exact: false }).waitFor();
  await question.getByRole('button', { name: 'Cancel the replay' }).click();
  await eventually(async () => expect(await phase()).toBe('Cancelled'), 60_000);
  await page.getByText('Cancelled').first().waitFor();
  expectSound();
}, 240_000);
