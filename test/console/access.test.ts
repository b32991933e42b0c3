import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { RestClient } from '../e2e/rest.ts';
import { accessibilityViolations, openPage } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { consoleSuite } from './console-suite.ts';
import { loseAnswer } from './lost-answer.ts';

const manifests = mkdtempSync(join(tmpdir(), 'posthorn-console-'));
const organization = {
  apiVersion: 'posthorn.dev/v1alpha1',
  kind: 'Organization',
  metadata: { name: 'other' },
  spec: { namespace: 'other' },
};
writeFileSync(join(manifests, 'organization.json'), JSON.stringify(organization));

const suite = consoleSuite({ args: ['--manifests', manifests] });
const { made, open, expectSound } = suite;
afterAll(() => rmSync(manifests, { recursive: true }));

const keysNamed = async (name: string): Promise<unknown[]> =>
  (await suite.rest.send('GET', '/api/api-keys')).body.data.filter((key: { name: string }) => key.name === name);

test('an admin creates an API key, which is shown once, and revokes it', async () => {
  const name = '<b>Deploy</b>';
  const page = await open('o/default/overview', { permissions: ['clipboard-read', 'clipboard-write'] });
  await page.getByRole('link', { name: 'Keys and sessions' }).click();
  await page.getByRole('button', { name: 'New key…' }).click();
  const form = page.getByRole('dialog', { name: 'New API key' });
  await form.locator('input:focus').waitFor();
  await page.keyboard.type(name);
  await form.getByLabel('delete').uncheck();
  expect(await form.getByRole('checkbox').count()).toBe(3);
  await form.getByLabel('Role').selectOption('viewer');
  expect(await form.getByRole('checkbox').count()).toBe(1);
  await form.getByLabel('Ends').selectOption('In 30 days');
  expect(await accessibilityViolations(page)).toEqual([]);
  await form.getByRole('button', { name: 'Create key' }).click();
  const shown = page.getByRole('dialog', { name: `Store the key ${name}` });
  const key = (await shown.locator('code').filter({ hasText: /^ph_/ }).textContent()) ?? '';
  expect(await accessibilityViolations(page)).toEqual([]);
  await shown.getByRole('button', { name: 'Copy key' }).click();
  await shown.getByText('Copied').waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(key);
  // The page asks before it closes: the key may not be stored.
  await page.keyboard.press('Escape');
  await page.goBack();
  const leaves = page.getByRole('dialog', { name: 'Leave without the key?' });
  await leaves.getByText('revoke it and create another one', { exact: false }).waitFor();
  await leaves.getByRole('button', { name: 'Stay' }).click();
  await shown.getByRole('button', { name: 'I have stored it' }).click();
  await shown.waitFor({ state: 'detached' });
  expect(await page.content()).not.toContain(key);

  const holder = new RestClient(suite.standalone.url, key);
  await eventually(async () => expect((await holder.send('GET', '/api/routes')).status).toBe(200));
  expect((await holder.send('POST', '/api/sources', { name: 'refused' })).status).toBe(403);
  const [kept] = await keysNamed(name);
  expect(kept).toMatchObject({ role: 'viewer', scopes: ['read'] });
  const row = page.getByRole('row').filter({ hasText: name });
  await row.getByRole('button', { name: 'Revoke key…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke key' }).click();
  await row.waitFor({ state: 'detached' });
  await eventually(async () => expect((await holder.send('GET', '/api/routes')).status).toBe(401));
  expectSound();
});

test('a key whose answer was lost is made once, and shown after a second press', async () => {
  const page = await open('o/default/access');
  await page.getByRole('button', { name: 'New key…' }).click();
  const form = page.getByRole('dialog', { name: 'New API key' });
  await form.getByLabel('Name').fill('Pipeline');
  await loseAnswer(page, '/api-keys');
  await form.getByRole('button', { name: 'Create key' }).click();
  await form.getByRole('alert').getByText('It is unknown whether this was done.').waitFor();
  await form.getByRole('button', { name: 'Create key' }).click();
  await page.getByRole('dialog', { name: 'Store the key Pipeline' }).locator('code').filter({ hasText: /^ph_/ }).waitFor();
  expect(await keysNamed('Pipeline')).toHaveLength(1);
});

test('a session is in the list with its browser, and is revoked there', async () => {
  const other = await openPage(suite.browser, { userAgent: 'Browser of a colleague' });
  try {
    await other.page.goto(`${suite.standalone.url}/console/login`);
    await other.page.getByLabel('API key', { exact: true }).last().fill(suite.standalone.key);
    await other.page.keyboard.press('Enter');
    await other.page.getByRole('button', { name: 'Sign out' }).waitFor();
    const page = await open('o/default/access');
    const row = page.getByRole('row').filter({ hasText: 'Browser of a colleague' });
    await row.getByRole('button', { name: 'Revoke session…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke session' }).click();
    await row.waitFor({ state: 'detached' });
    expect((await suite.rest.send('GET', '/api/sessions')).body.data).toEqual([]);
    expectSound();
  } finally {
    await other.close();
  }
});

test('the switcher leads to another organization, which shows nothing of the first', async () => {
  await made('sources', { name: 'of the first' });
  const page = await open('o/default/sources');
  await page.getByRole('cell', { name: 'of the first' }).waitFor();
  await page.getByRole('combobox', { name: 'Organization' }).selectOption('other');
  await page.waitForURL('**/o/other/overview');
  await page.getByRole('link', { name: 'Sources', exact: true }).click();
  await page.getByText('No source yet').waitFor();
  expect(await page.getByText('of the first').count()).toBe(0);
  expectSound();
});
