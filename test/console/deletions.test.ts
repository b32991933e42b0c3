import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';
import { manifestsOfGit, ofGit } from './declared-of-git.ts';

const suite = consoleSuite({ args: manifestsOfGit({ name: 'of Git' }) });
const { made, sent, open, expectSound } = suite;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver?.close());

const statusOf = async (path: string) => (await suite.rest.send('GET', `/api/${path}`)).status;

test('a destination is deleted after a question that names the routes that lose it and what waits for it', async () => {
  await made('sources', { name: 'shop' });
  const other = await made('destinations', { name: 'other', url: receiver.url });
  const id = await made('destinations', { name: 'billing', url: receiver.url, enabled: false });
  await made('routes', { name: 'both', sourceId: 'shop', destinationIds: [id, other] });
  await made('routes', { name: 'alone', sourceId: 'shop', destinationIds: [id] });
  await made('routes', {
    name: 'in need',
    sourceId: 'shop',
    destinationIds: [other],
    failoverDestinationIds: [id],
    failoverAfterAttempts: 1,
  });
  await sent('shop', { n: 1 });
  await eventually(async () =>
    expect((await suite.rest.send('GET', `/api/deliveries?destinationId=${id}&status=pending`)).body.data).toHaveLength(2),
  );
  const page = await open(`o/default/targets/${id}`);
  await page.getByRole('button', { name: 'Delete destination…' }).click();
  const question = page.getByRole('dialog', { name: 'Delete destination billing?' });
  await question.getByText('3 routes lead to it and lose it:', { exact: false }).waitFor();
  const text = (await question.textContent()) ?? '';
  for (const name of ['both', 'alone', 'in need']) expect(text).toContain(name);
  expect(text).toContain('No destination is left for the events of alone.');
  await question.getByText('2 messages wait for it.', { exact: false }).waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await question.getByRole('button', { name: 'Keep it' }).click();
  expect(await statusOf(`destinations/${id}`)).toBe(200);
  await page.getByRole('button', { name: 'Delete destination…' }).click();
  await question.getByRole('button', { name: 'Delete destination' }).click();
  await page.waitForURL('**/targets');
  expect(await statusOf(`destinations/${id}`)).toBe(404);
  await eventually(async () =>
    expect((await suite.rest.send('GET', `/api/deliveries?destinationId=${id}&status=dlq`)).body.data).toHaveLength(2),
  );
  expectSound();
}, 120_000);

test('the question waits until the effect is read, and reports it', async () => {
  const id = await made('destinations', { name: 'slow to read', url: receiver.url });
  const page = await open(`o/default/targets/${id}`);
  await page.getByRole('button', { name: 'Delete destination…' }).waitFor();
  const gate = Promise.withResolvers<void>();
  await page.route('**/analytics/series?*', async (route) => {
    await gate.promise;
    await route.continue();
  });
  // What the page has read before is not read again.
  await page.reload();
  await page.getByRole('button', { name: 'Delete destination…' }).click();
  const question = page.getByRole('dialog', { name: 'Delete destination slow to read?' });
  await question.getByText('Reading what waits for it…').waitFor();
  const button = question.getByRole('button', { name: 'Delete destination' });
  await question.getByText('You can delete it once its effect has been read.').waitFor();
  expect(await button.isDisabled()).toBe(true);
  expect(await accessibilityViolations(page)).toEqual([]);
  gate.resolve();
  await question.getByText('Nothing waits for it.', { exact: false }).waitFor();
  await eventually(async () => expect(await button.isEnabled()).toBe(true));
  expect(await question.getByText('You can delete it').count()).toBe(0);
  expectSound();
}, 120_000);

test('what another has changed since it was shown is not deleted before the reader has been informed', async () => {
  const id = await made('destinations', { name: 'contested', url: receiver.url });
  const change = async (timeoutMs: number): Promise<void> =>
    expect((await suite.rest.send('PATCH', `/api/destinations/${id}`, { timeoutMs })).status).toBe(200);
  const page = await open(`o/default/targets/${id}`);
  const ask = page.getByRole('button', { name: 'Delete destination…' });
  const question = page.getByRole('dialog', { name: 'Delete destination contested?' });
  const button = question.getByRole('button', { name: 'Delete destination' });
  const told = question.getByText('The destination has changed since this page showed it.');
  await ask.click();
  await eventually(async () => expect(await button.isEnabled()).toBe(true));
  expect(await told.count()).toBe(0);
  // Times of changes have whole seconds.
  await new Promise((resolve) => setTimeout(resolve, 1100));
  await change(2000);
  await button.click();
  await question.getByText('Nothing was changed.', { exact: false }).waitFor();
  await told.waitFor();
  expect(await statusOf(`destinations/${id}`)).toBe(200);
  expect(await accessibilityViolations(page)).toEqual([]);
  await question.getByRole('button', { name: 'Keep it' }).click();

  // The page has not reread it when the question opens.
  await page.route(`**/destinations/${id}`, async (route) => ((await question.isVisible()) ? route.continue() : route.abort()));
  await new Promise((resolve) => setTimeout(resolve, 1100));
  await change(3000);
  await ask.click();
  await told.waitFor();
  await eventually(async () => expect(await button.isEnabled()).toBe(true));
  await button.click();
  await page.waitForURL('**/targets');
  expect(await statusOf(`destinations/${id}`)).toBe(404);
  expectSound();
}, 120_000);

test('an endpoint is deleted with its subscriptions', async () => {
  const applicationId = await made('webhook-applications', { name: 'Acme' });
  const id = await made('webhook-endpoints', { applicationId, url: 'https://acme.example/in' });
  const eventTypeId = await made('event-types', { name: 'order.paid' });
  const subscription = await made('webhook-subscriptions', { endpointId: id, eventTypeId });
  const page = await open(`o/default/targets/${id}`);
  await page.getByRole('button', { name: 'Delete endpoint…' }).click();
  const question = page.getByRole('dialog', { name: 'Delete this endpoint?' });
  await question.getByText('Its 1 subscription is deleted with it.', { exact: false }).waitFor();
  await question.getByRole('button', { name: 'Delete endpoint' }).click();
  await page.waitForURL('**/targets');
  await page.locator('main:focus').waitFor();
  expect([await statusOf(`webhook-endpoints/${id}`), await statusOf(`webhook-subscriptions/${subscription}`)]).toEqual([404, 404]);
  expectSound();
});

test('a replay is deleted on its page, which is left also when the question was closed before the answer', async () => {
  const id = await made('replays', { name: 'of-nothing', what: 'deliveries', filter: { status: ['dlq'] } });
  const page = await open(`o/default/replays/${id}`);
  await page.getByRole('button', { name: 'Delete replay…' }).click();
  const question = page.getByRole('dialog', { name: 'Delete replay of-nothing?' });
  await question.getByText('is not run again for 90 days', { exact: false }).waitFor();
  let answer = (): void => undefined;
  const isClosed = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route(`**/replays/${id}`, async (route) => {
    if (route.request().method() === 'DELETE') await isClosed;
    await route.continue();
  });
  await question.getByRole('button', { name: 'Delete replay' }).click();
  await page.keyboard.press('Escape');
  await question.waitFor({ state: 'hidden' });
  answer();
  await page.waitForURL('**/replays');
  expect(await statusOf(`replays/${id}`)).toBe(404);
  expectSound();
});

test('the Lab deletes a filter that no route uses, and says why it does not delete one that is used', async () => {
  const conditions = [{ field: 'payload.a', operator: 'exists' }];
  const used = await made('filters', { name: 'Used', conditions });
  const free = await made('filters', { name: 'Free', conditions });
  await made('sources', { name: 'filtered' });
  const target = await made('destinations', { name: 'filtered', url: receiver.url });
  await made('routes', { name: 'filtered', sourceId: 'filtered', destinationIds: [target], filterId: used });
  const page = await open(`o/default/lab?id=${used}`);
  await page.getByRole('button', { name: 'Delete filter…' }).click();
  const question = page.getByRole('dialog', { name: 'Delete filter Used?' });
  await question.getByText('1 route refers to it.', { exact: false }).waitFor();
  await question.getByRole('button', { name: 'Delete filter' }).click();
  await question.getByText('Nothing was changed.').waitFor();
  await page.goto(`${suite.standalone.url}/console/o/default/lab?id=${free}`);
  await page.getByRole('button', { name: 'Delete filter…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete filter' }).click();
  await page.waitForURL((url) => !url.searchParams.has('id'));
  expect([await statusOf(`filters/${used}`), await statusOf(`filters/${free}`)]).toEqual([200, 404]);
  expectSound();
}, 120_000);

test('what Git declares is not deleted here, and the question says who declares it', async () => {
  const page = await open(`o/default/targets/${ofGit.destination}`);
  const ask = async (name: string): Promise<void> => {
    await page.getByRole('button', { name }).click();
    const question = page.getByRole('dialog');
    await question.getByText('declares it. Delete it there: here it is locked.', { exact: false }).waitFor();
    expect(await question.getByText('posthorn-manifests').count()).toBe(1);
    expect(await question.getByRole('button').allTextContents()).toEqual(['Close']);
    expect(await accessibilityViolations(page)).toEqual([]);
    await question.getByRole('button', { name: 'Close' }).click();
  };
  await ask('Delete destination…');
  await page.goto(`${suite.standalone.url}/console/o/default/channels?at=${ofGit.channel}`);
  await ask('Delete channel…');
  expectSound();
});

test('the histogram of the deliveries of a destination marks when its circuit opened', async () => {
  const down = await startReceiver((response) => {
    response.statusCode = 503;
    response.end();
  });
  try {
    await made('sources', { name: 'broken' });
    const retryPolicy = { maxRetries: 1, initialDelay: 100, maxDelay: 100, backoffMultiplier: 1 };
    const id = await made('destinations', { name: 'broken', url: down.url, retryPolicy });
    const route = await made('routes', {
      name: 'to the broken one',
      sourceId: 'broken',
      destinationIds: [id],
      circuitFailureThreshold: 2,
      circuitCooldownSeconds: 300,
    });
    await sent('broken', { n: 1 });
    await eventually(async () =>
      expect((await suite.rest.send('GET', `/api/routes/${route}/circuit-status`)).body.destinations[0].circuitState).toBe('open'),
    );
    const page = await open(`o/default/deliveries?destinationId=${id}`);
    const chart = page.getByRole('region', { name: 'Counts over time' });
    await chart.getByText('The circuit from to the broken one to broken opened at', { exact: false }).waitFor();
    expect(await chart.locator('path.s-open').count()).toBe(1);
    expect(await accessibilityViolations(page)).toEqual([]);
    await page.goto(`${suite.standalone.url}/console/o/default/deliveries?routeId=${route}`);
    await chart.getByText('opened at', { exact: false }).waitFor();
    await page.goto(`${suite.standalone.url}/console/o/default/deliveries`);
    await chart.getByText('deliver', { exact: false }).first().waitFor();
    expect(await chart.locator('path.s-open').count()).toBe(0);
    expectSound();
  } finally {
    await down.close();
  }
}, 120_000);
