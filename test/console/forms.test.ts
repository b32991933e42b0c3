import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { accessibilityViolations } from '../support/browser.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';
import { expectNoSideScroll } from './fitting.ts';
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

  const secret = page.getByRole('textbox', { name: 'Signing secret' });
  await secret.fill('x');
  await secret.fill('');
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
  await page.getByText('2, after 5 s, 1 min').waitFor();

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

test('a stored secret, and a client certificate with its key, are removed by buttons, and kept until the form is saved', async () => {
  const authority = createCertificateAuthority();
  const { cert, key } = authority.issue(['sender.example']);
  authority.remove();
  const tls = { clientCertificate: cert.toString(), clientKey: key.toString() };
  const source = await made('sources', { name: 'signed', signingSecret: 'a-secret-of-the-shop' });
  const target = await made('destinations', { name: 'mutual', url: 'https://mutual.example/', tls });
  const read = async (path: string) => (await suite.rest.send('GET', `/api/${path}`)).body;
  const page = await open(`o/default/sources/${source}/edit`);
  const save = page.getByRole('button', { name: 'Save' });
  await page.getByRole('button', { name: 'Remove signing secret' }).click();
  await page.getByPlaceholder('Removed').waitFor();
  await page.getByRole('button', { name: 'Keep signing secret' }).click();
  expect(await save.isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'Remove signing secret' }).click();
  expect(await accessibilityViolations(page)).toEqual([]);
  await save.click();
  await page.waitForURL('**/sources?at=*');
  expect(await read(`sources/${source}`)).toMatchObject({ hasSigningSecret: false });

  await page.goto(`${suite.standalone.url}/console/o/default/destinations/${target}/edit`);
  await page.getByText('Further settings').click();
  expect(await page.getByLabel('Client certificate').getAttribute('placeholder')).toBe('Unchanged');
  await page.getByRole('button', { name: 'Remove client certificate' }).click();
  await save.click();
  await page.locator('.error', { hasText: 'belong together' }).waitFor();
  await page.getByRole('button', { name: 'Remove client key' }).click();
  await save.click();
  await page.waitForURL('**/targets?at=*');
  expect((await read(`destinations/${target}`)).tls).toBeNull();
  expectSound();
}, 120_000);

test('a form does not save over what another has saved since it was opened', async () => {
  const { rest } = suite;
  const id = await made('destinations', { name: 'contested', url: receiver.url, description: 'as it was' });
  const read = async () => (await rest.send('GET', `/api/destinations/${id}`)).body;
  const page = await open(`o/default/destinations/${id}/edit`);
  const description = page.getByLabel('Description');
  const save = page.getByRole('button', { name: 'Save', exact: true });
  const conflict = page.getByRole('alert').filter({ hasText: 'contested was changed meanwhile.' });
  await description.fill('mine');
  await rest.send('PATCH', `/api/destinations/${id}`, { description: 'theirs', timeoutMs: 7000 });
  await save.click();
  await conflict.waitFor();
  await page.getByRole('table', { name: 'What differs' }).getByText('theirs').waitFor();
  expect([(await read()).description, await save.isDisabled()]).toEqual(['theirs', true]);
  expect(await accessibilityViolations(page)).toEqual([]);
  await conflict.getByRole('button', { name: 'Take what is saved' }).click();
  await eventually(async () => expect(await description.inputValue()).toBe('theirs'));
  await page.locator('main:focus').waitFor();

  await description.fill('mine');
  await rest.send('PATCH', `/api/destinations/${id}`, { description: 'theirs again' });
  await save.click();
  const keep = conflict.getByRole('button', { name: 'Keep my changes' });
  // What is typed is not kept while it is not JSON.
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  const editor = page.getByLabel('Body of the request');
  const whole = await editor.inputValue();
  await editor.fill('{');
  expect(await keep.isDisabled()).toBe(true);
  await editor.fill(whole);
  await keep.click();
  expect(await description.inputValue()).toBe('mine');
  await save.click();
  await page.waitForURL('**/targets?at=*');
  expect(await read()).toMatchObject({ description: 'mine', timeoutMs: 7000 });

  // The second press finds what the first one, whose answer was lost, has saved.
  await page.goto(`${suite.standalone.url}/console/o/default/destinations/${id}/edit`);
  await description.fill('once');
  await loseAnswer(page, `/destinations/${id}`);
  await save.click();
  await page.getByText('The API does not answer.').waitFor();
  await save.click();
  await page.waitForURL('**/targets?at=*');
  expect(await read()).toMatchObject({ description: 'once' });
  expectSound();
}, 120_000);

test('a list of references finds those beyond its first hundred, in forms and in the Lab', async () => {
  // The list has the last name last among those that are made in one second.
  const oldest = await made('sources', { name: 'the oldest one', slug: 'z-oldest' });
  await Promise.all(Array.from({ length: 105 }, (_none, number) => made('sources', { name: `younger ${number}` })));
  const url = 'https://hooks.example.com/in';
  const target = await made('destinations', { name: 'found', url });
  const page = await open('o/default/routes/new');
  await page.getByLabel('Name *').fill('from the oldest');
  const source = page.getByLabel('Source *');
  await source
    .locator('option', { hasText: /younger 9\d/ })
    .first()
    .waitFor({ state: 'attached' });
  expect(await source.locator('option', { hasText: 'the oldest one' }).count()).toBe(0);
  await page.getByRole('searchbox', { name: 'Search the sources' }).fill('oldest');
  await page.getByText('1 found.').waitFor();
  await source.selectOption(oldest);
  await page.getByRole('searchbox', { name: 'Search the sources' }).fill('');
  await page.getByText('The first 100 are listed.', { exact: false }).waitFor();
  expect(await source.inputValue()).toBe(oldest);
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.getByLabel('Add to destinations', { exact: true }).selectOption(target);
  await page.getByRole('group', { name: 'Destinations' }).getByRole('button', { name: 'Add' }).click();
  await page.getByRole('button', { name: 'Create route' }).click();
  await page.waitForURL('**/routes?at=*');
  // The form of the route names what the first page does not have.
  await page.getByRole('link', { name: 'Edit' }).click();
  await eventually(async () => expect(await page.getByLabel('Source').first().inputValue()).toContain('the oldest one'));

  await page.goto(`${suite.standalone.url}/console/o/default/lab?source=z-oldest`);
  const ofLab = page.getByLabel('Source', { exact: true });
  await ofLab.locator('option', { hasText: 'the oldest one' }).waitFor({ state: 'attached' });
  expect(await ofLab.inputValue()).toBe('z-oldest');
  await page.getByRole('searchbox', { name: 'Search the sources' }).fill('younger 0');
  await page.getByText('1 found.').waitFor();
  await ofLab.selectOption({ label: 'younger 0' });
  await page.waitForURL('**source=younger-0**');
  expectSound();
}, 180_000);

test('a form reads the chosen references that are beyond the first hundred in one request', async () => {
  const url = 'https://hooks.example.com/in';
  const chosen = await Promise.all(
    ['z-first', 'z-second', 'z-third'].map((slug) => made('destinations', { name: `chosen ${slug}`, slug, url })),
  );
  const sourceId = await made('sources', { name: 'of the chosen' });
  const route = await made('routes', { name: 'to the chosen', sourceId, destinationIds: chosen });
  await Promise.all(Array.from({ length: 105 }, (_none, number) => made('destinations', { name: `later ${number}`, url })));
  const page = await open('o/default');
  const requests: string[] = [];
  page.on('request', (request) => void requests.push(new URL(request.url()).href.replace(/^.*\/default\//, '')));
  await page.goto(`${suite.standalone.url}/console/o/default/routes/${route}/edit`);
  const group = page.getByRole('group', { name: 'Destinations' });
  for (const slug of ['z-first', 'z-second', 'z-third']) await group.getByText(`chosen ${slug}`, { exact: false }).first().waitFor();
  const ofDestinations = requests.filter((each) => each.startsWith('destinations'));
  expect(ofDestinations.filter((each) => each.startsWith('destinations/'))).toEqual([]);
  expect(ofDestinations.filter((each) => each.includes('id='))).toHaveLength(1);
  expectSound();
}, 180_000);

test('a form has no accessibility violation in light and dark, and fits 320 pixels', async () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await open('o/default/destinations/new', { colorScheme, viewport: { width: 320, height: 700 } });
    await page.getByLabel('Name *').waitFor();
    await page.getByText('Further settings').click();
    expect(await accessibilityViolations(page)).toEqual([]);
    await expectNoSideScroll(page, 320);
    expectSound();
    if (colorScheme === 'light') await page.close();
  }
}, 120_000);
