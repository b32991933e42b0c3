import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';
import { manifestsOfGit, ofGit } from './declared-of-git.ts';
import { loseAnswer } from './lost-answer.ts';

const hostile = '<img src=x onerror="document.title=\'taken\'">';

const suite = consoleSuite({ args: manifestsOfGit({ name: 'of Git' }) });
const { made, sent, open, expectSound } = suite;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver?.close());

const read = async (path: string) => (await suite.rest.send('GET', `/api/${path}`)).body;

test('a destination that is disabled on its page keeps its messages, and gets them once that is undone', async () => {
  await made('sources', { name: 'shop' });
  const destination = await made('destinations', { name: 'billing', url: receiver.url });
  await made('routes', { name: 'all', sourceId: 'shop', destinationIds: ['billing'] });
  const page = await open(`o/default/targets/${destination}`);
  await page.getByRole('button', { name: 'Disable', exact: true }).click();
  await page.getByRole('button', { name: 'Enable', exact: true }).waitFor();
  expect(await read(`destinations/${destination}`)).toMatchObject({ enabled: false });
  await sent('shop', { n: 1 });
  await eventually(async () => expect((await read('deliveries?status=pending')).data).toHaveLength(1));
  expect(receiver.requests).toEqual([]);
  // What was done last can be undone on another screen, too, by keyboard.
  const done = page.getByRole('status').filter({ hasText: 'billing is disabled.' });
  await page.getByRole('link', { name: 'Routes', exact: true }).click();
  await page.getByRole('heading', { name: 'Routes', exact: true }).waitFor();
  await done.getByRole('button', { name: 'Undo' }).focus();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.keyboard.press('Enter');
  await receiver.arrived(1);
  await page.getByRole('status').filter({ hasText: 'Undone: billing is enabled again.' }).waitFor();
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Close');
  await page.keyboard.press('Enter');
  await page.getByRole('status').filter({ hasText: 'billing' }).waitFor({ state: 'detached' });
  expect(await page.evaluate('document.activeElement.id')).toBe('main');
  expect(await read(`destinations/${destination}`)).toMatchObject({ enabled: true });
  expectSound();
});

test('a disabled endpoint gets no message of a new event, which the question before says', async () => {
  const application = await made('webhook-applications', { name: 'Acme' });
  const endpoint = await made('webhook-endpoints', { applicationId: application, url: 'https://hooks.example.com/in' });
  const page = await open(`o/default/targets?at=${endpoint}`);
  await page.getByRole('button', { name: 'Disable endpoint…' }).click();
  const question = page.getByRole('dialog', { name: 'Disable this endpoint?' });
  await question.getByText('New events make no message for it.').waitFor();
  await question.getByRole('button', { name: 'Keep it' }).click();
  expect((await read(`webhook-endpoints/${endpoint}`)).data.isDisabled).toBe(false);
  await page.getByRole('button', { name: 'Disable endpoint…' }).click();
  await question.getByRole('button', { name: 'Disable endpoint' }).click();
  await page.getByRole('button', { name: 'Enable', exact: true }).waitFor();
  expect((await read(`webhook-endpoints/${endpoint}`)).data.isDisabled).toBe(true);
  await page.getByRole('button', { name: 'Enable', exact: true }).click();
  await page.getByRole('button', { name: 'Disable endpoint…' }).waitFor();
  expect((await read(`webhook-endpoints/${endpoint}`)).data.isDisabled).toBe(false);
  expectSound();
});

test('an endpoint and an application that are enabled, which is undone, keep the reason why they were disabled', async () => {
  const disabled = { isDisabled: true, disabledReason: 'The customer asked for it.' };
  const application = await made('webhook-applications', { name: 'Paused' });
  const endpoint = await made('webhook-endpoints', { applicationId: application, url: 'https://paused.example/in' });
  for (const [path, place] of [
    [`webhook-endpoints/${endpoint}`, `targets?at=${endpoint}`],
    [`webhook-applications/${application}`, `applications?at=${application}`],
  ]) {
    await suite.rest.send('PATCH', `/api/${path}`, disabled);
    const page = await open(`o/default/${place}`);
    await page.getByRole('button', { name: 'Enable', exact: true }).click();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('is disabled again.', { exact: false }).waitFor();
    expect((await read(`${path}`)).data).toMatchObject(disabled);
    await page.getByText(disabled.disabledReason).first().waitFor();
    expectSound();
    await page.close();
  }
});

test('a test whose answer is lost is sent again by the second press', async () => {
  const tested = await startReceiver();
  try {
    const destination = await made('destinations', { name: 'tested', url: tested.url });
    const page = await open(`o/default/targets/${destination}`);
    await loseAnswer(page, '/test');
    await page.getByRole('button', { name: 'Send test…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Send a test' });
    await dialog.getByRole('button', { name: 'Send test' }).click();
    await dialog.getByRole('alert').waitFor();
    await dialog.getByRole('button', { name: 'Send again' }).click();
    await dialog.getByText('Delivered').waitFor();
    expect(tested.requests).toHaveLength(2);
  } finally {
    await tested.close();
  }
});

test('a destination that has failed is healthy on its page, in the list and in the topology after five minutes without a failure, and not at once when an attempt succeeds', async () => {
  let isDown = true;
  const flaky = await startReceiver((response) => {
    response.statusCode = isDown ? 503 : 200;
    response.end();
  });
  try {
    await made('sources', { name: 'healing' });
    const retryPolicy = { maxRetries: 1, initialDelay: 100, maxDelay: 100, backoffMultiplier: 1 };
    const destination = await made('destinations', { name: 'healing', url: flaky.url, retryPolicy });
    await made('routes', { name: 'healing', sourceId: 'healing', destinationIds: ['healing'] });
    await sent('healing', { n: 1 });
    await eventually(async () => expect((await read(`deliveries?destinationId=${destination}&status=dlq`)).data).toHaveLength(1));
    const page = await open(`o/default/targets/${destination}`, { movesClock: true });
    await page.getByText('Failing').first().waitFor();
    isDown = false;
    await sent('healing', { n: 2 });
    await page.getByText('Degraded').first().waitFor();
    const list = `${suite.standalone.url}/console/o/default/targets?name=healing`;
    await page.goto(list);
    await page.getByRole('row').filter({ hasText: 'healing' }).getByText('Degraded').waitFor();
    await page.clock.fastForward(300_000);
    await page.getByRole('row').filter({ hasText: 'healing' }).getByText('Healthy').waitFor();
    await page.goto(`${suite.standalone.url}/console/o/default/targets/${destination}`);
    await page.getByText('Healthy').first().waitFor();
    await page.goto(`${suite.standalone.url}/console/o/default/topology`);
    const destinations = page.getByRole('tree', { name: 'Destinations, worst first' });
    await destinations.getByRole('treeitem').filter({ hasText: 'healing' }).filter({ hasText: 'Healthy' }).waitFor();
    await page.goto(list);
    await page.getByRole('row').filter({ hasText: 'healing' }).getByText('Healthy').waitFor();
    // The figures of the day keep what failed.
    await page
      .getByRole('row')
      .filter({ hasText: 'healing' })
      .getByText(/^50\s%$/)
      .waitFor();
    expectSound();
  } finally {
    await flaky.close();
  }
});

test('a delivery that goes to a failover destination is counted at the one that did not take it', async () => {
  const down = await startReceiver((response) => {
    response.statusCode = 503;
    response.end();
  });
  try {
    await made('sources', { name: 'failing over' });
    const retryPolicy = { maxRetries: 5, initialDelay: 100, maxDelay: 100, backoffMultiplier: 1 };
    await made('destinations', { name: 'primary', url: down.url, retryPolicy });
    await made('destinations', { name: 'secondary', url: receiver.url });
    const failover = { failoverDestinationIds: ['secondary'], failoverAfterAttempts: 1 };
    await made('routes', { name: 'failing over', sourceId: 'failing-over', destinationIds: ['primary'], ...failover });
    await sent('failing-over', { n: 1 });
    await eventually(async () => expect((await read('deliveries?destinationId=secondary&status=delivered')).data).toHaveLength(1));
    const page = await open('o/default/deliveries?destinationId=primary');
    await page.getByText('0 deliveries ended, 0 of them failed, 1 went to a failover destination, from').first().waitFor();
    await page.goto(`${suite.standalone.url}/console/o/default/deliveries?destinationId=secondary`);
    await page.getByText('1 delivery ended, 0 of them failed, from').first().waitFor();
    expectSound();
  } finally {
    await down.close();
  }
});

test('a destination that Git enables is not disabled here, and the page says who owns it', async () => {
  const page = await open(`o/default/targets/${ofGit.destination}`);
  await page.getByRole('button', { name: 'Disable', exact: true }).click();
  const refusal = page.getByRole('dialog', { name: 'The destination was not changed' });
  await refusal.getByText('Its declaration owns this.').waitFor();
  await page.keyboard.press('Escape');
  await refusal.waitFor({ state: 'detached' });
  expect(await read(`destinations/${ofGit.destination}`)).toMatchObject({ enabled: true });
});

test('a test of a channel that fails is among what was sent to the channel, with its reason', async () => {
  const config = { url: 'https://127.0.0.1:9/in', secret: `whsec_${Buffer.alloc(32, 7).toString('base64')}` };
  const channel = await made('notification-channels', { name: 'On call', type: 'webhook', config });
  const page = await open(`o/default/channels?at=${channel}`);
  const sentThere = page.getByRole('region', { name: 'What was sent' });
  await sentThere.getByText('Nothing was sent to this channel yet.').waitFor();
  await page.getByRole('button', { name: 'Send a test' }).click();
  await sentThere.getByText('Test', { exact: false }).waitFor();
  await sentThere.getByText('Failed').waitFor();
  const [alert] = (await read(`notification-channels/${channel}/alerts`)).data;
  expect(alert).toMatchObject({ isTest: true, status: 'failed', errorMessage: expect.any(String) });
  await sentThere.getByText(alert.errorMessage).waitFor();
  expectSound();
});

test('a person makes an endpoint of an application by the form, is shown its secret once, and changes it', async () => {
  const application = await made('webhook-applications', { name: '<b>Umbrella</b>' });
  const page = await open(`o/default/applications?at=${application}`);
  await page.getByRole('link', { name: 'New endpoint' }).click();
  await page.getByRole('heading', { name: 'New endpoint' }).waitFor();
  const owner = page.getByLabel('Application *');
  await owner.locator('option', { hasText: '<b>Umbrella</b>' }).waitFor({ state: 'attached' });
  expect(await owner.inputValue()).toBe(application);
  await page.getByLabel('URL *').fill('http://hooks.example.com/in');
  await page.getByRole('button', { name: 'Create endpoint' }).click();
  // The API's own words, at the field.
  await page.locator('.error', { hasText: 'must be an absolute https URL' }).waitFor();
  await page.getByLabel('URL *').fill('https://hooks.example.com/in');
  await page.getByRole('button', { name: 'Create endpoint' }).click();
  const shown = page.getByRole('dialog', { name: 'Store the signing secret' });
  expect(await shown.locator('code').textContent()).toMatch(/^whsec_/);
  expect(await accessibilityViolations(page)).toEqual([]);
  // It is shown until the reader dismisses it.
  await page.keyboard.press('Escape');
  await page.mouse.click(5, 5);
  const leaves = page.getByRole('dialog', { name: 'Leave without the secret?' });
  expect([await shown.isVisible(), await leaves.count()]).toEqual([true, 0]);
  await page.goBack();
  await leaves.getByRole('button', { name: 'Stay' }).click();
  await leaves.waitFor({ state: 'detached' });
  await shown.getByRole('button', { name: 'I have stored it' }).click();
  await page.waitForURL('**/targets?at=ep_*');
  const id = new URL(page.url()).searchParams.get('at') ?? '';
  expect(await page.content()).not.toContain('whsec_');

  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel('Description').fill('Production');
  await page.getByText('Further settings').click();
  await page.getByLabel('Rate limit per second').fill('7');
  await page.getByLabel('Retry delays').fill('5\n300');
  await page.getByLabel('Expires after seconds').fill('3600');
  await page.getByLabel('Success status codes').fill('2xx\n409');
  await page.getByLabel('Ordered').check();
  expect([await page.getByLabel('Application').isEditable(), await page.getByLabel('Application').inputValue()]).toEqual([
    false,
    expect.stringContaining('Umbrella'),
  ]);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.waitForURL('**/targets?at=ep_*');
  expect((await read(`webhook-endpoints/${id}`)).data).toMatchObject({
    applicationId: application,
    url: 'https://hooks.example.com/in',
    description: 'Production',
    rateLimitPerSecond: 7,
    retryDelays: [5, 300],
    expiresAfterSeconds: 3600,
    successStatusCodes: ['2xx', 409],
    ordered: true,
    isDisabled: false,
  });
  expectSound();
});

test('an endpoint is subscribed to an event type with a filter, and unsubscribed', async () => {
  const application = await made('webhook-applications', { name: 'Initech' });
  const endpoint = await made('webhook-endpoints', { applicationId: application, url: 'https://hooks.example.com/paid' });
  await made('event-types', { name: 'order.paid', displayName: hostile });
  const page = await open(`o/default/targets/${endpoint}`);
  const subscriptions = page.getByRole('region', { name: 'Subscriptions' });
  await subscriptions.getByText('It subscribes to no event type').waitFor();
  await subscriptions.getByRole('link', { name: 'Subscribe' }).click();
  const eventType = page.getByLabel('Event type *');
  await eventType.locator('option', { hasText: 'order.paid' }).waitFor({ state: 'attached' });
  await eventType.selectOption({ index: 1 });
  await page.getByLabel('Filter expression').fill('event.data.total >');
  await page.getByRole('button', { name: 'Create subscription' }).click();
  // The API's own words, at the field.
  await page.locator('.error').first().waitFor();
  await page.getByLabel('Filter expression').fill('event.data.total > 100.0');
  await page.getByRole('textbox', { name: 'Label filters' }).fill('{"region":["eu","us"]}');
  await page.getByRole('button', { name: 'Create subscription' }).click();
  await page.waitForURL(`**/targets?at=${endpoint}`);
  await subscriptions.getByText('event.data.total > 100.0').waitFor();
  expect((await read(`webhook-subscriptions?endpointId=${endpoint}`)).data).toEqual([
    expect.objectContaining({ eventTypeName: 'order.paid', labelFilters: { region: ['eu', 'us'] }, isEnabled: true }),
  ]);

  await subscriptions.getByRole('link', { name: 'order.paid' }).click();
  await page.getByLabel('Is enabled').uncheck();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.waitForURL(`**/targets?at=${endpoint}`);
  await subscriptions.getByText('Disabled').waitFor();
  expect((await read(`webhook-subscriptions?endpointId=${endpoint}`)).data).toEqual([
    expect.objectContaining({ labelFilters: { region: ['eu', 'us'] }, isEnabled: false }),
  ]);
  await subscriptions.getByRole('link', { name: 'order.paid' }).click();
  await page.getByRole('textbox', { name: 'Label filters' }).fill('');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.waitForURL(`**/targets?at=${endpoint}`);
  expect((await read(`webhook-subscriptions?endpointId=${endpoint}`)).data).toEqual([expect.objectContaining({ labelFilters: {} })]);
  await subscriptions.getByRole('link', { name: 'YAML' }).click();
  await page.getByText('The subscription was made through the API and has no manifest.').waitFor();
  await page.goBack();
  await subscriptions.getByRole('button', { name: 'Unsubscribe…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Unsubscribe' }).click();
  await subscriptions.getByText('It subscribes to no event type').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  expectSound();
});

test('a person cancels a delivery that waits on its page, and the rest of its list by filter, after both were asked', async () => {
  await made('sources', { name: 'cancelled' });
  const destination = await made('destinations', { name: 'kept-back', url: receiver.url, enabled: false });
  const other = await made('destinations', { name: 'without-deliveries', url: receiver.url });
  await made('routes', { name: 'cancelled', sourceId: 'cancelled', destinationIds: ['kept-back'] });
  for (let n = 0; n < 3; n++) await sent('cancelled', { n });
  const waiting = async () => (await read(`deliveries?destinationId=${destination}&status=pending`)).data;
  await eventually(async () => expect(await waiting()).toHaveLength(3));
  const [{ id }] = await waiting();
  const page = await open(`o/default/deliveries/${id}`);
  await page.getByRole('button', { name: 'Cancel delivery…' }).click();
  const question = page.getByRole('dialog', { name: 'Cancel this delivery?' });
  await question.getByText('It becomes a dead letter, which can be sent again.', { exact: false }).waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await question.getByRole('button', { name: 'Keep it' }).click();
  expect(await read(`deliveries/${id}`)).toMatchObject({ status: 'pending' });
  await page.getByRole('button', { name: 'Cancel delivery…' }).click();
  await question.getByRole('button', { name: 'Cancel delivery' }).click();
  await question.waitFor({ state: 'detached' });
  await page.getByText('because it was cancelled', { exact: false }).first().waitFor();
  await page.getByRole('button', { name: 'Cancel delivery…' }).waitFor({ state: 'detached' });
  const { cancellation } = await read(`deliveries/${id}`);
  await page
    .getByRole('definition')
    .filter({ hasText: `by ${cancellation.by}` })
    .waitFor();
  expect(await read(`deliveries/${id}`)).toMatchObject({ deadLetterReason: 'cancelled' });

  await page.goto(page.url().replace(/deliveries.*$/, `deliveries?destinationId=${other},${destination}`));
  await page.getByRole('button', { name: 'Cancel waiting…' }).click();
  const list = page.getByRole('dialog', { name: 'Cancel deliveries that wait' });
  await list.getByText('2 deliveries match the filters of the list.').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  expect(await waiting()).toHaveLength(2);
  await list.getByRole('button', { name: 'Cancel 2 deliveries' }).click();
  await list.getByText('2 are cancelled.', { exact: false }).waitFor();
  await list.getByRole('button', { name: 'Close' }).click();
  expect(await waiting()).toEqual([]);
  expect((await read(`deliveries?destinationId=${destination}&errorType=cancelled`)).data).toHaveLength(3);
  expectSound();
});

test('a cancel of a list is tried again after a failure: it counts again, and continues where it was, with what it had cancelled', async () => {
  await made('sources', { name: 'refused' });
  await made('destinations', { name: 'kept-away', url: receiver.url, enabled: false });
  await made('routes', { name: 'refused', sourceId: 'refused', destinationIds: ['kept-away'] });
  await sent('refused', { n: 1 });
  const waiting = async () => (await read('deliveries?status=pending')).data;
  await eventually(async () => expect(await waiting()).toHaveLength(1));
  const page = await open('o/default/deliveries?status=pending');
  const bodies: { dryRun: boolean; cursor?: string }[] = [];
  const refused = { status: 429, json: { code: 'RATE_LIMITED', message: 'Too many requests are under way.' } };
  await page.route('**/deliveries/cancel', async (route) => {
    bodies.push(route.request().postDataJSON());
    if (bodies.length === 1 || bodies.length === 4) return await route.fulfill(refused);
    if (bodies.length === 2) return await route.continue();
    // Only a walk of more than 500 has a second step.
    if (bodies.length === 3)
      return await route.fulfill({ json: { matched: 1, cancelled: 1, cancelling: 0, skipped: 0, nextCursor: 'further' } });
    return await route.fulfill({ json: { matched: 2, cancelled: 1, cancelling: 0, skipped: 1, nextCursor: null } });
  });
  await page.getByRole('button', { name: 'Cancel waiting…' }).click();
  const list = page.getByRole('dialog', { name: 'Cancel deliveries that wait' });
  await list.getByRole('button', { name: 'Try again' }).click();
  await list.getByRole('button', { name: 'Cancel 1 delivery' }).click();
  await list.getByRole('button', { name: 'Continue' }).click();
  await list.getByText('2 are cancelled.', { exact: false }).waitFor();
  await list.getByText('1 is left alone: ended before, gone, or on the way to another shard.', { exact: false }).waitFor();
  expect(bodies.map(({ dryRun, cursor }) => [dryRun, cursor])).toEqual([
    [true, undefined],
    [true, undefined],
    [false, undefined],
    [false, 'further'],
    [false, 'further'],
  ]);
});
