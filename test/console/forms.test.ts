import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';
import { loseAnswer } from './lost-answer.ts';

const hostile = '<img src=x onerror="document.title=\'taken\'">';

const suite = consoleSuite();
const { made, open, expectSound } = suite;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver?.close());

/** Waits until the first faulty field has the focus. */
const faultHasFocus = (page: Page): Promise<true> =>
  eventually('the focus at the fault', 10_000, async () =>
    (await page.evaluate('document.activeElement === document.querySelector("[aria-invalid=true]")')) === true ? true : undefined,
  );

test('a person makes a source, a destination and a route by forms, and an event goes through them', async () => {
  const page = await open('o/default/sources');
  await page.getByRole('link', { name: 'New source' }).click();
  await page.getByRole('button', { name: 'Create source' }).click();
  await page.getByText('This is required.').waitFor();
  await faultHasFocus(page);
  await page.getByRole('button', { name: 'Create source' }).click();
  await faultHasFocus(page);
  expect(await page.getByLabel('Name *').getAttribute('aria-invalid')).toBe('true');
  await page.getByLabel('Name *').fill(hostile);
  await page.getByText('Further settings').click();
  await page.getByLabel('Slug').fill('Not A Slug');
  await page.getByRole('button', { name: 'Create source' }).click();
  // The API's own words, at the field.
  await page.locator('.error', { hasText: 'slug' }).waitFor();
  await faultHasFocus(page);
  await page.getByRole('button', { name: 'Create source' }).click();
  await page.locator('.error', { hasText: 'slug' }).waitFor();
  await faultHasFocus(page);
  expect(await page.getByLabel('Slug').getAttribute('aria-invalid')).toBe('true');
  await page.getByLabel('Slug').fill('shop');
  await page.getByRole('button', { name: 'Create source' }).click();
  await page.waitForURL('**/sources?at=*');
  await page.getByRole('complementary').getByText(hostile).waitFor();
  await page.getByText('/ingest/default/shop').first().waitFor();

  await page.goto(`${suite.standalone.url}/console/o/default/targets`);
  await page.getByRole('link', { name: 'New destination' }).click();
  await page.getByLabel('Name *').fill('billing');
  await page.getByLabel('URL').fill(receiver.url);
  await page.getByRole('button', { name: 'Create destination' }).click();
  await page.waitForURL('**/targets?at=*');

  await page.goto(`${suite.standalone.url}/console/o/default/routes/new`);
  await page.getByLabel('Name *').fill('orders');
  const source = page.getByLabel('Source *');
  await source.locator('option', { hasText: hostile }).waitFor({ state: 'attached' });
  await source.selectOption({ index: 1 });
  const destinations = page.getByLabel('Add to destinations', { exact: true });
  await destinations.locator('option', { hasText: 'billing' }).waitFor({ state: 'attached' });
  await destinations.selectOption({ index: 1 });
  await page.getByRole('group', { name: 'Destinations' }).getByRole('button', { name: 'Add' }).click();
  await page.getByRole('button', { name: 'Create route' }).click();
  await page.waitForURL('**/routes?at=*');

  const accepted = await fetch(`${suite.standalone.url}/ingest/default/shop`, { method: 'POST', body: '{"total":1}' });
  expect(accepted.ok).toBe(true);
  await eventually(
    'the delivery',
    30_000,
    async () => (await suite.rest.send('GET', '/api/deliveries?status=delivered')).body.data.length === 1,
  );

  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel('Name *').fill('all orders');
  await page.getByRole('button', { name: 'JSON' }).click();
  expect(JSON.parse(await page.getByLabel('Body of the request').inputValue())).toEqual({ name: 'all orders' });
  await page.getByRole('link', { name: 'Sources' }).click();
  await page.getByRole('dialog', { name: 'Leave without saving?' }).getByRole('button', { name: 'Stay' }).click();
  await page.getByLabel('Body of the request').fill('{"name": ');
  await page.locator('.error', { hasText: 'JSON' }).waitFor();
  expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true);
  await page.getByLabel('Body of the request').fill('{"name": "paid orders"}');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.waitForURL('**/routes?at=*');
  await page.getByRole('complementary').getByText('paid orders').waitFor();
  expect(await page.title()).not.toBe('taken');
  expectSound();
}, 180_000);

test('a change sends only what differs, and an answer that is lost makes nothing twice', async () => {
  const { rest } = suite;
  const read = async (path: string) => (await rest.send('GET', `/api/${path}`)).body;
  const source = await made('sources', { name: 'orders', slug: 'kept', signingSecret: 'a-secret-of-the-shop' });
  const target = await made('destinations', { name: 'web', url: receiver.url });
  const keys = { accessKeyId: 'AKIAAAAAAAAAAAAA', secretAccessKey: 'abcdefghijklmnop' };
  const lake = await made('destinations', {
    name: 'lake',
    type: 's3',
    config: { bucket: 'orders', region: 'eu-west-1', prefix: 'p', ...keys },
  });
  const channel = await made('notification-channels', { name: 'mail', type: 'email', config: { addresses: ['a@example.com'] } });
  const condition = { field: 'payload.a', operator: 'equals', value: '1000' };
  const routed = { sourceId: source, destinationIds: [target], filterConditions: [condition], notificationChannelIds: [channel] };
  const route = await made('routes', { name: 'alerts', ...routed });
  const application = await made('webhook-applications', { name: 'exact', metadata: { a: 1 } });
  const page = await open(`o/default/sources/${source}/edit`);
  const save = page.getByRole('button', { name: 'Save' });
  const edit = async (family: string, id: string): Promise<void> => {
    await page.goto(`${suite.standalone.url}/console/o/default/${family}/${id}/edit`);
    await page.getByLabel('Name *').waitFor();
    expect(await save.isDisabled()).toBe(true);
  };

  await page.getByLabel('Signing secret').fill('x');
  await page.getByLabel('Signing secret').fill('');
  await page.getByLabel('Description').fill('of the shop');
  await save.click();
  await page.waitForURL('**/sources?at=*');
  expect(await read(`sources/${source}`)).toMatchObject({ hasSigningSecret: true, description: 'of the shop' });

  await edit('destinations', lake);
  await page.getByLabel('Prefix').fill('');
  await save.click();
  await page.getByText('This cannot be removed; give another value.').waitFor();
  await page.getByLabel('Prefix').fill('q');
  await page.getByText('Further settings').click();
  await page.getByLabel('Backoff multiplier').fill('');
  await page.getByLabel('Backoff multiplier').pressSequentially('1.5');
  await page.getByLabel('Delays').fill('5000\nsoon');
  await save.click();
  await page.locator('.error', { hasText: 'delays' }).waitFor();
  await page.getByLabel('Delays').fill('5000\n60000\n');
  await save.click();
  await page.waitForURL('**/targets?at=*');
  const retryPolicy = { backoffMultiplier: 1.5, delays: [5000, 60_000] };
  expect(await read(`destinations/${lake}`)).toMatchObject({ config: { prefix: 'q' }, retryPolicy });
  await page.getByText('2, after 5.0 s, 1 min').waitFor();

  await edit('destinations', lake);
  await page.getByText('Further settings').click();
  expect(await page.getByLabel('Delays').inputValue()).toBe('5000\n60000');
  await page.getByLabel('Delays').fill('');
  await save.click();
  await page.waitForURL('**/targets?at=*');
  expect((await read(`destinations/${lake}`)).retryPolicy).toMatchObject({ backoffMultiplier: 1.5, delays: null });

  await edit('destinations', target);
  await page.getByText('Further settings').click();
  const forwarded = page.getByRole('textbox', { name: 'Forward headers' });
  const all = page.getByLabel('All forward headers');
  expect(await all.isChecked()).toBe(true);
  await forwarded.fill('X-Shop-Topic\nAuthorization');
  await save.click();
  await page.locator('.error', { hasText: 'must not name a credential' }).waitFor();
  await forwarded.fill('X-Shop-Topic\nX-Shop-Id\n');
  await save.click();
  await page.waitForURL('**/targets?at=*');
  expect(await read(`destinations/${target}`)).toMatchObject({ forwardHeaders: ['X-Shop-Topic', 'X-Shop-Id'] });
  await page.getByText('X-Shop-Topic, X-Shop-Id forwarded, no others').waitFor();

  await edit('destinations', target);
  await page.getByText('Further settings').click();
  await forwarded.fill('');
  await save.click();
  await page.waitForURL('**/targets?at=*');
  expect(await read(`destinations/${target}`)).toMatchObject({ forwardHeaders: [] });
  await edit('destinations', target);
  await page.getByText('Further settings').click();
  expect(await forwarded.getAttribute('placeholder')).toContain('None');
  expect(await all.isChecked()).toBe(false);
  await all.check();
  await save.click();
  await page.waitForURL('**/targets?at=*');
  expect(await read(`destinations/${target}`)).toMatchObject({ forwardHeaders: null });

  await edit('routes', route);
  await page.getByText('Further settings').click();
  expect(await page.getByLabel('Value').inputValue()).toBe('"1000"');
  await page.getByRole('button', { name: 'Remove mail' }).click();
  await save.click();
  await page.waitForURL('**/routes?at=*');
  expect(await read(`routes/${route}`)).toMatchObject({ notificationChannelIds: [], filterConditions: [condition] });

  await edit('applications', application);
  await page.getByText('Further settings').click();
  await page.getByLabel('Metadata').fill('{"a": 12345678901234567890}');
  await page.getByLabel('Name *').fill('inexact');
  await save.click();
  await page.locator('.error', { hasText: 'does not keep all digits' }).waitFor();
  await faultHasFocus(page);
  await page.getByLabel('Metadata').fill('{"a": 2}');
  await save.click();
  await page.waitForURL('**/applications?at=*');
  expect((await read(`webhook-applications/${application}`)).data).toMatchObject({ name: 'inexact', metadata: { a: 2 } });
  expectSound();

  await page.goto(`${suite.standalone.url}/console/o/default/sources/new`);
  await loseAnswer(page, '/sources');
  await page.getByLabel('Name *').fill('once');
  await page.getByRole('button', { name: 'Create source' }).click();
  await page.getByText('The API does not answer.').waitFor();
  await page.getByRole('button', { name: 'Create source' }).click();
  await page.waitForURL('**/sources?at=*');
  const named = (await read('sources')).data.filter(({ name }: { name: string }) => name === 'once');
  expect(named).toHaveLength(1);
}, 180_000);

test('a form has no accessibility violation in light and dark, and fits 320 pixels', async () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await open('o/default/destinations/new', { colorScheme, viewport: { width: 320, height: 700 } });
    await page.getByLabel('Name *').waitFor();
    await page.getByText('Further settings').click();
    expect(await accessibilityViolations(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320);
    expectSound();
    if (colorScheme === 'light') await page.close();
  }
}, 120_000);
