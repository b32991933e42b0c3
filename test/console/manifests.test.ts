import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { parse, stringify } from 'yaml';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { consoleSuite } from './console-suite.ts';
import { manifestsOfGit, ofGit } from './declared-of-git.ts';

const hostile = '<img src=x onerror="document.title=\'taken\'">';
const manager = 'posthorn-manifests';

const args = manifestsOfGit({ name: hostile });
const suite = consoleSuite({ args });
const { open, expectSound } = suite;

const clipboard = { permissions: ['clipboard-read', 'clipboard-write'] };
const copied = (page: Page): Promise<string> => page.evaluate('navigator.clipboard.readText()');
const read = async (path: string) => (await suite.rest.send('GET', `/api/${path}`)).body;

/** Presses Tab until the element has the focus. */
async function tabTo(page: Page, element: Locator): Promise<void> {
  for (let presses = 0; presses < 80; presses += 1) {
    await page.keyboard.press('Tab');
    if (await element.evaluate((each) => each === each.ownerDocument.activeElement)) return;
  }
  throw new Error('Tab does not come to it');
}

async function describedBy(page: Page, element: Locator): Promise<string> {
  const ids = ((await element.getAttribute('aria-describedby')) ?? '').split(' ');
  return (await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).textContent()))).join(' ');
}

test('what Git owns is locked in the form, becomes a patch to copy, and the rest is saved', async () => {
  const page = await open(`o/default/targets/${ofGit.destination}`, clipboard);
  await page.getByRole('link', { name: 'Edit' }).click();
  const name = page.getByLabel('Name *');
  await name.waitFor();
  const url = page.getByLabel('URL');
  expect([await name.inputValue(), await name.isEditable(), await url.isEditable()]).toEqual([hostile, false, false]);
  // A locked field is read with the keys, too, and they change nothing.
  await name.focus();
  await page.keyboard.type('x');
  expect(await name.inputValue()).toBe(hostile);
  const kind = page.getByLabel('Type', { exact: false }).first();
  const enabled = page.getByLabel('Enabled');
  for (const [field, text] of [
    [kind, 'http'],
    [url, 'https://hooks.example.com/in'],
    [enabled, 'on'],
  ] as const) {
    await tabTo(page, field);
    expect([await field.inputValue(), await describedBy(page, field)]).toEqual([text, expect.stringContaining(`Owned by ${manager}`)]);
  }
  await page.keyboard.press('Space');
  expect([await enabled.isChecked(), await enabled.getAttribute('aria-disabled')]).toEqual([true, 'true']);
  await page.getByRole('group', { name: 'Headers' }).getByText(`In part owned by ${manager}`).waitFor();
  expect(await page.getByLabel('Description').isEditable()).toBe(true);
  expect(await accessibilityViolations(page)).toEqual([]);

  await page.getByRole('button', { name: 'Write a patch' }).click();
  await page.getByLabel('URL').fill('https://hooks.example.com/v2');
  await page.getByLabel('Description').fill(hostile);
  await page.getByRole('button', { name: 'Write the patch' }).click();
  await page.getByRole('button', { name: 'Copy patch' }).click();
  await page.getByText('Copied').waitFor();
  const patch = {
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'Destination',
    metadata: { name: 'by-git', namespace: 'default' },
    spec: { description: hostile, http: { url: 'https://hooks.example.com/v2' } },
  };
  expect(parse(await copied(page))).toEqual(patch);
  expect(await read(`destinations/${ofGit.destination}`)).toMatchObject({ url: 'https://hooks.example.com/in', description: null });

  // A change of the form removes the patch that was written before.
  expect(await page.getByText('A field that is null').count()).toBe(0);
  await page.getByLabel('URL').fill('https://hooks.example.com/v3');
  await page.getByRole('region', { name: 'Patch', exact: true }).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'As code' }).click();
  const code = page.getByRole('dialog', { name: 'This view as code' });
  expect(await code.textContent()).toMatch(new RegExp(`-X POST '[^']*/manifests/${ofGit.destination}/patch'.*"change":\\{"`, 's'));
  await page.keyboard.press('Escape');
  // The form restores locked fields: changes there could not be undone.
  await page.getByRole('button', { name: 'Write a patch' }).click();
  expect([await page.getByLabel('URL').inputValue(), await page.getByLabel('Description').inputValue()]).toEqual([
    'https://hooks.example.com/in',
    hostile,
  ]);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.waitForURL('**/targets?at=*');
  expect(await read(`destinations/${ofGit.destination}`)).toMatchObject({ description: hostile });
  expect(await page.title()).not.toBe('taken');
  expectSound();
}, 180_000);

test('a save that is refused offers what was typed as a patch', async () => {
  const page = await open(`o/default/destinations/${ofGit.destination}/edit`, clipboard);
  await page.getByLabel('Name *').waitFor();
  await page.getByRole('button', { name: 'JSON' }).click();
  await page
    .getByLabel('Body of the request')
    .fill('{"url": "https://hooks.example.com/v3", "headers": {"authorization": "Bearer not-to-be-shown"}}');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Its declaration owns this.').waitFor();
  await page.getByRole('button', { name: 'Write it as a patch' }).click();
  await page.getByRole('button', { name: 'Copy patch' }).click();
  await page.getByText('Copied').waitFor();
  const text = await copied(page);
  expect(text).not.toContain('not-to-be-shown');
  expect(parse(text).spec.http).toEqual({
    url: 'https://hooks.example.com/v3',
    headers: [{ name: 'authorization', valueSecretRef: { name: 'by-git-credentials', key: 'header-authorization' } }],
  });
  await page.getByText('by-git-credentials').last().waitFor();
  expect(await read(`destinations/${ofGit.destination}`)).toMatchObject({ url: 'https://hooks.example.com/in' });
  expectSound();
}, 180_000);

test('a patch says what a null means, and that nothing differs', async () => {
  const page = await open(`o/default/destinations/${ofGit.destination}/edit`);
  await page.getByLabel('Name *').waitFor();
  await page.getByRole('button', { name: 'Write a patch' }).click();
  await page.getByRole('button', { name: 'JSON' }).click();
  const body = page.getByLabel('Body of the request');
  await body.fill('{"headers": null}');
  await page.getByRole('button', { name: 'Write the patch' }).click();
  await page.getByText('A field that is null is to be removed from the manifest.').waitFor();
  await body.fill('{"url": "https://hooks.example.com/in"}');
  await page.getByRole('button', { name: 'Write the patch' }).click();
  await page.getByText('Nothing differs.').waitFor();
  expect(await page.getByRole('button', { name: 'Copy patch' }).count()).toBe(0);
  // The text is that of the form again, without what is locked.
  await page.getByRole('button', { name: 'Write a patch' }).click();
  expect(await body.inputValue()).toBe('{}');
  expectSound();
}, 180_000);

test('a manifest has all digits of its numbers, and says what is masked and that it is locked', async () => {
  const page = await open('o/default/destinations', clipboard);
  const answer = await read(`manifests/${ofGit.destination}`);
  const headers = [{ name: 'authorization', value: '••••mnop' }];
  const manifest = { ...answer.manifest, spec: { big: 'DIGITS', http: { headers } } };
  const body = JSON.stringify({ ...answer, manifest, isLocked: true, owners: [] }).replace('"DIGITS"', '12345678901234567891');
  await page.route(`**/api/**/manifests/${ofGit.destination}`, (route) => route.fulfill({ contentType: 'application/json', body }));
  await page.goto(`${suite.standalone.url}/console/o/default/manifests/${ofGit.destination}`);
  const yaml = page.getByRole('region', { name: 'Manifest' });
  await yaml.waitFor();
  expect(await yaml.textContent()).toContain('  big: 12345678901234567891\n');
  await page.getByText('Values with • are masked').waitFor();
  await page.getByText('A manifest declares all of it. Change it there: here it is refused.').waitFor();
  await page.getByRole('button', { name: 'Copy YAML' }).click();
  await page.getByText('Copied').waitFor();
  expect(await copied(page)).toContain('big: 12345678901234567891\n');
  await page.goto(`${suite.standalone.url}/console/o/default/destinations/${ofGit.destination}/edit`);
  await page.getByText('Owned by a manifest').first().waitFor();
  expectSound();
}, 180_000);

test('a resource is shown as YAML with the owner of each field, its conditions and their reasons, and what is hostile stays text', async () => {
  const page = await open('o/default/channels', clipboard);
  const answer = await read(`manifests/${ofGit.channel}`);
  const owners = answer.owners.map((owner: object) => ({ ...owner, managers: [hostile] }));
  const conditions = [{ ...answer.conditions[0], type: 'Ready', status: 'False', reason: 'Invalid', message: hostile }];
  await page.route(`**/manifests/${ofGit.channel}`, (route) => route.fulfill({ json: { ...answer, owners, conditions } }));
  await page.getByText('Mail').first().click();
  await page.getByRole('complementary').getByRole('link', { name: 'YAML' }).click();
  const yaml = page.getByRole('region', { name: 'Manifest' });
  await yaml.waitFor();
  expect(await yaml.textContent()).toContain(`addresses:\n      - "ops@example.com"  owned by ${hostile}\n`);
  expect(await yaml.textContent()).toContain('  enabled: true\n');
  await page.getByRole('cell', { name: hostile }).waitFor();
  await page.getByRole('cell', { name: 'Invalid' }).waitFor();
  await page.getByRole('button', { name: 'Copy YAML' }).click();
  await page.getByText('Copied').waitFor();
  expect(parse(await copied(page))).toMatchObject({
    kind: 'NotificationChannel',
    spec: { type: 'email', email: { addresses: ['ops@example.com'] } },
  });
  expect([await page.title(), await page.locator('img[src="x"]').count()]).toEqual(['mail · Posthorn', 0]);
  expectSound();
}, 180_000);

test('a route is made of the YAML of another one, which is copied, changed and declared', async () => {
  await suite.made('sources', { name: 'shop' });
  const id = await suite.made('routes', { name: 'first', sourceId: 'shop', destinationIds: ['by-git'] });
  const page = await open(`o/default/routes?at=${id}`, clipboard);
  await page.getByRole('complementary').getByRole('link', { name: 'YAML' }).click();
  await page.getByRole('button', { name: 'Copy YAML' }).click();
  await page.getByText('Copied').waitFor();
  const { spec, ...route } = parse(await copied(page));
  const declared = { ...route, metadata: { name: 'by-yaml', namespace: 'default' }, spec: { ...spec, name: 'By YAML' } };
  writeFileSync(join(args.at(-1) ?? '', 'route.yaml'), stringify(declared));
  await page.goto(`${suite.standalone.url}/console/o/default/routes`);
  await page.getByRole('cell', { name: 'By YAML' }).click();
  await page.getByRole('complementary').getByRole('link', { name: 'YAML' }).click();
  await page.getByText(`${manager} owns the fields that are marked.`, { exact: false }).waitFor();
  const { data: routes } = await read('routes');
  const { id: declaredId } = routes.find(({ name }: { name: string }) => name === 'By YAML');
  await eventually(async () => {
    const { conditions } = await read(`manifests/${declaredId}`);
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'Programmed', status: 'True' }));
  });
  const event = await suite.sent('shop', { n: 1 });
  await eventually(async () => expect((await read(`events/${event}`)).deliveryCount).toBe(2));
  expectSound();
}, 180_000);

test('an application that the API made says that it has no manifest', async () => {
  const id = await suite.made('webhook-applications', { name: 'Acme' });
  const page = await open(`o/default/manifests/${id}`);
  await page.getByRole('heading', { name: 'No manifest' }).waitFor();
  await page.getByText('The application was made through the API and has no manifest.').waitFor();
  await page.goto(`${suite.standalone.url}/console/o/default/applications/${id}/edit`);
  expect(await page.getByLabel('Name *').isEditable()).toBe(true);
  expectSound();
}, 180_000);
