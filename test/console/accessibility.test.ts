import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { accessibilityViolations, openPage, type WatchedPage } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';
import { bare, manifestsOfGit, ofGit } from './declared-of-git.ts';
import { expectToFit } from './fitting.ts';
import { listScreens } from './screens.ts';

const suite = consoleSuite({ args: manifestsOfGit() });
const { made, sent } = suite;
const ids = { source: '', event: '', delivery: '', message: '' };
let receiver: Receiver;
let watched: WatchedPage;
beforeAll(async () => {
  receiver = await startReceiver();
  ids.source = await made('sources', { name: 'shop' });
  await made('destinations', { name: 'billing', url: receiver.url });
  await made('routes', { name: 'orders', sourceId: 'shop', destinationIds: ['billing'] });
  const eventTypeId = await made('event-types', { name: 'order.paid' });
  const { body } = await suite.rest.send('PUT', '/api/webhook-applications/upsert', { externalId: 'acme', name: 'Acme' });
  const endpointId = await made('webhook-endpoints', { applicationId: body.data.id, url: receiver.url.replace('http:', 'https:') });
  await made('webhook-subscriptions', { endpointId, eventTypeId });
  ids.event = await sent('shop', { total: 125.5 });
  await suite.rest.send('POST', '/api/send-event', { eventType: 'order.paid', endpointId, payload: { total: 1 } });
  await eventually(async () => {
    const deliveries = await suite.rest.send('GET', '/api/deliveries?status=delivered');
    const messages = await suite.rest.send('GET', '/api/outbound-messages');
    ids.delivery = deliveries.body.data[0].id;
    ids.message = messages.body.data[0].id;
  }, 60_000);
  watched = await openPage(suite.browser, { reducedMotion: 'reduce' });
}, 240_000);
beforeEach(async () => {
  watched.errors.length = 0;
  await watched.page.unrouteAll({ behavior: 'ignoreErrors' });
});
afterAll(async () => {
  await watched?.close();
  await receiver?.close();
});

async function show(path: string, organization = 'default'): Promise<Page> {
  const { page } = watched;
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 1024 });
  await page.goto(`${suite.standalone.url}/console/o/${organization}/${path}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await eventually(async () => expect(await page.getByText(/^Reading /).count()).toBe(0));
  return page;
}

/** By all rules in light, and for contrast in dark. */
async function expectAccessible(page: Page): Promise<void> {
  const background = 'getComputedStyle(document.body).backgroundColor';
  const light = await page.evaluate(background);
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  await eventually(async () => expect(await page.evaluate(background)).not.toBe(light));
  expect(await accessibilityViolations(page, { rules: ['color-contrast'] })).toEqual([]);
  expect({ errors: watched.errors, policyViolations: watched.policyViolations }).toEqual({ errors: [], policyViolations: [] });
}

test.each(listScreens)(
  '%s has no fault that axe finds in either theme, fits at a zoom of 200 % and in 320 pixels, and stands still',
  async (screen) => {
    const page = await show(screen);
    await expectAccessible(page);
    expect(await page.evaluate('document.getAnimations().length')).toBe(0);
    await expectToFit(page);
  },
);

const stories = ['event', 'delivery', 'message'] as const;
const listOf = { event: 'events', delivery: 'deliveries', message: 'messages' } as const;
test.each(stories)('a story and the drawer beside its list have no fault that axe finds: %s', async (kind) => {
  const story = await show(`${listOf[kind]}/${ids[kind]}`);
  await expectAccessible(story);
  await expectToFit(story);
  const page = await show(`${listOf[kind]}?at=${ids[kind]}`);
  await page
    .getByRole('complementary', { name: `Selected ${kind}` })
    .getByRole('link', { name: 'Open story' })
    .waitFor();
  await eventually(async () => expect(await page.getByText(/^Reading /).count()).toBe(0));
  await expectAccessible(page);
});

test('the drawer of a source has no fault that axe finds, without failed signatures and with some', async () => {
  const source = await made('sources', { name: 'signed', provider: 'github', signingSecret: 'a-long-random-secret' });
  const page = await show(`sources?at=${source}`);
  const failed = page.getByRole('region', { name: 'Failed signatures' });
  await failed.getByText('None in the last 24 hours.').waitFor();
  await expectAccessible(page);
  await fetch(`${suite.standalone.url}/ingest/default/signed`, { method: 'POST', headers: { 'user-agent': 'x'.repeat(30) } });
  await show(`sources?at=${source}`);
  await failed.getByText('The request has no header x-hub-signature-256.').waitFor();
  await expectAccessible(page);
  await expectToFit(page);
});

describe('a dialog has no fault that axe finds:', () => {
  test.each<[title: string, path: () => string, act: (page: Page) => Promise<void>]>([
    ['the palette', () => 'overview', (page) => page.keyboard.press('Control+k')],
    ['the keyboard shortcuts', () => 'overview', (page) => page.keyboard.press('?')],
    [
      'the question before a delivery is sent again',
      () => `deliveries/${ids.delivery}`,
      (page) => page.getByRole('button', { name: 'Send again…' }).click(),
    ],
    [
      'the form that sends an event after a delay',
      () => 'messages',
      async (page) => {
        await page.getByRole('button', { name: 'Send event…' }).click();
        await page.getByRole('button', { name: 'After a delay' }).click();
      },
    ],
    [
      'the form that sends an event at a time',
      () => 'messages',
      async (page) => {
        await page.getByRole('button', { name: 'Send event…' }).click();
        await page.getByRole('button', { name: 'At a time' }).click();
      },
    ],
    [
      'the question before a source is deleted',
      () => `sources?at=${ids.source}`,
      (page) => page.getByRole('button', { name: 'Delete source…' }).click(),
    ],
    [
      'the question before a destination that Git declares is deleted',
      () => `targets/${ofGit.destination}`,
      (page) => page.getByRole('button', { name: 'Delete destination…' }).click(),
    ],
  ])('%s', async (_title, path, act) => {
    const page = await show(path());
    await act(page);
    await page.getByRole('dialog').waitFor();
    await expectAccessible(page);
    await expectToFit(page);
  });
});

/** Screens that show other things before the API has answered, where it fails, and where there is nothing; each once. */
const stateScreens = listScreens.filter((screen) => !screen.includes('?') && !screen.includes(ofGit.destination));

describe('a screen has no fault that axe finds', () => {
  const answers = '**/api/organizations/default/**';

  test.each(stateScreens)('a screen has no fault that axe finds before the API has answered: %s', async (screen) => {
    const { page } = watched;
    const held = Promise.withResolvers<void>();
    await page.route(answers, async (route) => {
      await held.promise;
      await route.abort();
    });
    await page.emulateMedia({ colorScheme: 'light' });
    await page.goto(`${suite.standalone.url}/console/o/default/${screen}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await expectAccessible(page);
    held.resolve();
  });

  test.each(stateScreens)('a screen has no fault that axe finds while the API fails: %s', async (screen) => {
    const { page } = watched;
    // The console retries after 5xx before it reports it.
    const failure = { status: 400, contentType: 'application/json', body: '{"message":"The store is away."}' };
    await page.route(answers, (route) => route.fulfill(failure));
    await page.emulateMedia({ colorScheme: 'light' });
    await page.goto(`${suite.standalone.url}/console/o/default/${screen}`);
    await page.getByText('The store is away.').first().waitFor();
    await expectAccessible(page);
  });

  test.each(stateScreens)('where there is nothing: %s', async (screen) => {
    const page = await show(screen, bare);
    await expectAccessible(page);
  });
});
