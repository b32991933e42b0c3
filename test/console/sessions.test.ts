import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { newApiKey } from '../../src/core/api-key-hash.ts';
import { RestClient } from '../e2e/rest.ts';
import { accessibilityViolations, openPage, startBrowser, type WatchedPage } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Standalone, startStandalone } from '../support/program.ts';
import { buildConsole } from './built-console.ts';

let browser: Browser;
let opened: WatchedPage | undefined;
/** Not bound to a loopback address. */
let reachable: Standalone;
beforeAll(async () => {
  await buildConsole();
  browser = await startBrowser();
  reachable = await startStandalone({ environment: { POSTHORN_HOST: '0.0.0.0' } });
}, 240_000);
afterEach(async () => {
  await opened?.close();
  opened = undefined;
});
afterAll(async () => {
  await browser?.close();
  await reachable?.stop();
});

async function signIn(page: Page, key: string): Promise<void> {
  await page.waitForURL('**/login**');
  await page.getByLabel('API key', { exact: true }).last().fill(key);
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => !url.pathname.endsWith('/login'));
}

test('a session that is revoked elsewhere or has expired leads to the login, and back to the same address', async () => {
  const rest = new RestClient(reachable.url, reachable.key);
  opened = await openPage(browser);
  const { page } = opened;
  const address = `${reachable.url}/console/o/default/events?status=failed`;
  const revoke = async (): Promise<void> => {
    const { body } = await rest.send('GET', '/api/sessions');
    for (const { id } of body.data) expect((await rest.send('DELETE', `/api/sessions/${id}`)).status).toBe(204);
  };
  await page.goto(address);
  for (const end of [revoke, () => page.context().clearCookies()]) {
    await signIn(page, reachable.key);
    await page.getByText('No events match').waitFor();
    expect(page.url()).toBe(address);
    await end();
  }
  await signIn(page, reachable.key);
  await page.getByText('No events match').waitFor();
  expect(page.url()).toBe(address);
}, 240_000);

test('an answer to a request of the session before neither leads to the login nor removes the cookie of the next session', async () => {
  const rest = new RestClient(reachable.url, reachable.key);
  opened = await openPage(browser);
  const { page } = opened;
  const address = `${reachable.url}/console/o/default/events?status=failed`;
  await page.goto(address);
  await signIn(page, reachable.key);
  await page.getByText('No events match').waitFor();
  const { body } = await rest.send('GET', '/api/sessions');
  for (const { id } of body.data) expect((await rest.send('DELETE', `/api/sessions/${id}`)).status).toBe(204);

  const [held, released] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()];
  await page.route(
    '**/api/sessions/current',
    async (route) => {
      const answer = await route.fetch();
      held.resolve(answer.status());
      await released.promise;
      await route.fulfill({ response: answer });
    },
    { times: 1 },
  );
  const visited: string[] = [];
  page.on('framenavigated', (frame) => visited.push(frame.url()));
  await page.goto(address);
  expect(await held.promise).toBe(401);
  const other = await page.context().newPage();
  await other.goto(`${reachable.url}/console/login`);
  await signIn(other, reachable.key);
  released.resolve();
  await page.getByText('No events match').waitFor();
  expect(new Set(visited)).toEqual(new Set([address]));
  expect(await page.context().cookies()).toHaveLength(1);
}, 240_000);

test('at the machine itself the cookie of a session that has ended is not in the way', async () => {
  const standalone = await startStandalone({ environment: { POSTHORN_HOST: '127.0.0.1' } });
  try {
    opened = await openPage(browser);
    const { page } = opened;
    await page.context().addCookies([{ name: 'posthorn_session', value: 'ended', url: standalone.url }]);
    await page.goto(`${standalone.url}/console/o/default/routes`);
    await page.getByRole('heading', { name: 'Routes' }).waitFor();
    expect(await page.context().cookies()).toEqual([]);
  } finally {
    await standalone.stop();
  }
}, 180_000);

test('two organizations in one installation see nothing of each other, whatever is pasted', async () => {
  const manifests = mkdtempSync(join(tmpdir(), 'posthorn-console-'));
  const { key: otherKey, sha256, prefix } = newApiKey();
  const apiVersion = 'posthorn.dev/v1alpha1';
  const objects = [
    { apiVersion, kind: 'Organization', metadata: { name: 'other' }, spec: { namespace: 'other', plan: 'enterprise' } },
    { apiVersion, kind: 'ApiKey', metadata: { name: 'admin', namespace: 'other' }, spec: { sha256, prefix, role: 'admin' } },
  ];
  for (const object of objects) writeFileSync(join(manifests, `${object.kind}.json`), JSON.stringify(object));
  const installation = await startStandalone({ args: ['--manifests', manifests], environment: { POSTHORN_HOST: '0.0.0.0' } });
  const pages: WatchedPage[] = [];
  try {
    const tenants = await Promise.all(
      [['default', installation.key] as const, ['other', otherKey] as const].map(async ([org, key]) => {
        const rest = new RestClient(installation.url, key);
        const source = `private-of-${org}`;
        await eventually(async () => expect((await rest.send('POST', '/api/sources', { name: source })).status).toBe(201), 60_000);
        const event = await eventually('an event to be accepted', 60_000, async () => {
          const answer = await fetch(`${installation.url}/ingest/${org}/${source}`, { method: 'POST', body: '{}' });
          return ((await answer.json()) as { eventId?: string }).eventId;
        });
        return { org, key, source, event };
      }),
    );
    for (const [own, foreign] of [tenants, tenants.toReversed()] as [(typeof tenants)[0], (typeof tenants)[0]][]) {
      const watched = await openPage(browser);
      pages.push(watched);
      const { page } = watched;
      const answers: Promise<string>[] = [];
      page.on('response', (response) => {
        if (response.url().includes('/api/')) answers.push(response.text().catch(() => ''));
      });
      await page.goto(`${installation.url}/console/o/${own.org}/events`);
      await signIn(page, own.key);
      await page.getByText(own.source).first().waitFor();
      for (const path of [`${own.org}/events/${foreign.event}`, `${foreign.org}/events/${foreign.event}`, `${foreign.org}/sources`]) {
        await page.goto(`${installation.url}/console/o/${path}`);
        await page.getByRole('alert').first().waitFor();
      }
      await page.goto(`${installation.url}/console/o/${own.org}/sources`);
      await page.getByText(own.source).first().waitFor();
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox').fill(foreign.event);
      await page.getByRole('option', { name: foreign.event }).waitFor();
      await page.keyboard.press('Enter');
      await page.waitForURL(`**/id/${foreign.event}`);
      await page.getByRole('alert').first().waitFor();
      expect((await Promise.all(answers)).filter((text) => text.includes(foreign.source))).toEqual([]);
      expect(await page.locator('body').textContent()).not.toContain(foreign.source);
    }
  } finally {
    for (const each of pages) await each.close();
    await installation.stop();
    rmSync(manifests, { recursive: true });
  }
}, 240_000);

test('an installation that others reach requires a key, and forgets it when the reader signs out', async () => {
  opened = await openPage(browser);
  const { page } = opened;
  await page.goto(`${reachable.url}/console/o/default/routes`);
  await page.waitForURL('**/login**');
  await page.getByLabel('API key', { exact: true }).last().fill('ph_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('The API key is not valid.').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.getByLabel('API key', { exact: true }).last().fill(reachable.key);
  await page.keyboard.press('Enter');
  await page.waitForURL('**/o/default/routes');
  await page.getByRole('heading', { name: 'Routes' }).waitFor();
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ name: 'posthorn_session', httpOnly: true, sameSite: 'Strict' });
  expect(await page.evaluate('JSON.stringify([document.cookie, localStorage, sessionStorage])')).not.toContain(reachable.key);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL('**/login**');
  await page.goto(`${reachable.url}/console/o/default/routes`);
  await page.waitForURL('**/login**');
  expect({ errors: opened.errors, policyViolations: opened.policyViolations }).toEqual({ errors: [], policyViolations: [] });
}, 180_000);
