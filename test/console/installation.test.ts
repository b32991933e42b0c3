import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { version } from '../../src/cmd/version.ts';
import { accessibilityViolations } from '../support/browser.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { consoleSuite } from './console-suite.ts';

const path = 'o/default/installation';
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
const suite = consoleSuite({
  environment: {
    // Known when standalone starts.
    get POSTHORN_REDIS_URL() {
      return redis.url;
    },
  },
});
afterEach(async () => {
  await redis.client.zrem('posthorn:{workers}:alive', 'w_earlier');
});
afterAll(() => redis.stop());

/** The texts of the rows of a table. */
async function rows(page: Page, label: string): Promise<string[][]> {
  const found = await page.getByRole('region', { name: label, exact: true }).locator('tbody tr').all();
  return Promise.all(found.map((row) => row.locator('td').allInnerTexts()));
}

test('the screen shows the versions that run, and with a warning those of workers of an earlier release', async () => {
  await redis.client.zadd('posthorn:{workers}:alive', Date.now() + 600_000, 'w_earlier');
  const page = await suite.open(path);
  await page.getByText('Several versions of Posthorn run').waitFor();
  expect(await rows(page, 'Versions')).toEqual([
    [version, '1', '1 api, 1 controller, 1 delivery, 1 ingest, 1 standalone'],
    ['unknown', '1', 'None'],
  ]);
  const workers = await rows(page, 'Workers');
  expect(workers.map(([id, , running]) => [id === 'w_earlier', running]).sort()).toEqual([
    [false, version],
    [true, 'unknown'],
  ]);
  expect((await rows(page, 'Processes')).map(([, , running]) => running)).toEqual(Array.from({ length: 5 }, () => version));
});

/** Reloads the page with a response as of standalone, but for these parts. */
async function answerWith(page: Page, parts: object): Promise<void> {
  await page.route('**/api/**/installation', async (route) => {
    const { body } = await suite.rest.send('GET', '/api/installation');
    await route.fulfill({ json: { ...body, ...parts } });
  });
  await page.reload();
}

test('the screen shows what an API of the release before answers, and why a part cannot be read', async () => {
  const page = await suite.open(path);
  const unread = [{ part: 'pools', reason: 'It did not answer within 3 s.' }];
  await answerWith(page, { versions: undefined, pools: [{ name: 'default', workers: 1, slots: 64 }], unread });
  await page.getByText('It did not answer within 3 s.').waitFor();
  expect(await rows(page, 'Delivery pools')).toEqual([['default', '1', '64', '–', '–', '–']]);
});

test('standalone shows no replicas of pools', async () => {
  const page = await suite.open(path);
  await page.getByRole('region', { name: 'Delivery pools', exact: true }).waitFor();
  expect(await rows(page, 'Delivery pools')).toEqual([['default', '1', expect.any(String), '–', '–', '–']]);
});

test('in Kubernetes the screen shows the wanted and ready replicas and the conditions of each pool', async () => {
  const page = await suite.open(path);
  const lastTransitionTime = '2026-01-02T03:04:05Z';
  const conditions = [
    { type: 'Accepted', status: 'True', reason: 'Accepted', message: '', lastTransitionTime },
    { type: 'Ready', status: 'False', reason: 'RollingOut', message: 'new pods come', lastTransitionTime },
  ];
  // The answer of standalone with what the API adds in Kubernetes: there is no cluster here.
  await answerWith(page, { pools: [{ name: 'eu', workers: 1, slots: 64, replicas: { wanted: 3, ready: 1 }, conditions }] });
  await page.getByText('Ready: False').waitFor();
  expect(await rows(page, 'Delivery pools')).toEqual([
    ['eu', '1', '64', '3', '1', expect.stringMatching(/^Accepted: True\s+Ready: False RollingOut: new pods come$/)],
  ]);
  expect(await accessibilityViolations(page)).toEqual([]);
});
