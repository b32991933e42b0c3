import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';

// The pictures of docs/console.md and README.md. POSTHORN_PICTURES=write updates them; otherwise they are made and discarded.

const root = new URL('../../', import.meta.url).pathname;
const isWritten = process.env['POSTHORN_PICTURES'] === 'write';
const directory = isWritten ? join(root, 'docs/pictures') : mkdtempSync(join(tmpdir(), 'posthorn-pictures-'));
const largestBytes = 200_000;

const suite = consoleSuite();
const { made, sent, open } = suite;
let receiver: Receiver;
let event: string;
let isDown = false;

beforeAll(async () => {
  mkdirSync(directory, { recursive: true });
  receiver = await startReceiver((response) => {
    response.statusCode = isDown ? 503 : 200;
    response.end(isDown ? 'down for maintenance' : 'ok');
  });
  await made('sources', { name: 'shop' });
  const retryPolicy = { maxRetries: 1, initialDelay: 100, maxDelay: 100, backoffMultiplier: 1 };
  await made('destinations', { name: 'billing', url: `${receiver.url}/billing`, retryPolicy });
  await made('destinations', { name: 'fraud-check', url: `${receiver.url}/fraud` });
  await made('routes', { name: 'orders-to-billing', sourceId: 'shop', destinationIds: ['billing'] });
  await made('routes', {
    name: 'large-orders-to-fraud-check',
    sourceId: 'shop',
    destinationIds: ['fraud-check'],
    filterConditions: [{ field: 'payload.total', operator: 'gt', value: 1000 }],
  });
  for (let order = 1; order <= 40; order += 1) await sent('shop', { type: 'order.paid', order, total: order * 40 });
  await settled('/api/deliveries?status=delivered&limit=100', 40);
  isDown = true;
  event = await sent('shop', { type: 'order.paid', order: 41, total: 640.5, customer: { id: 'cus_7', country: 'SE' } });
  await settled('/api/deliveries?status=dlq', 1);
}, 240_000);
afterAll(async () => {
  await receiver?.close();
  if (!isWritten) rmSync(directory, { recursive: true });
});

async function settled(path: string, least: number): Promise<void> {
  await eventually('deliveries', 60_000, async () => (await suite.rest.send('GET', path)).body.data.length >= least);
}

const scenes: [name: string, path: () => string, act: (page: Page) => Promise<void>][] = [
  ['overview', () => 'overview', (page) => page.getByRole('region', { name: 'Is anything wrong?' }).waitFor()],
  ['story', () => `events/${event}`, (page) => page.getByText('payload.total gt 1000', { exact: true }).waitFor()],
  ['deliveries', () => 'deliveries', (page) => page.getByRole('table').waitFor()],
];

test.each(scenes)('the picture %s is made, is small, and is named in the documentation', async (name, path, act) => {
  const page = await open(`o/default/${path()}`, { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' });
  await act(page);
  await eventually(async () => expect(await page.getByText(/^Reading /).count()).toBe(0));
  const file = join(directory, `${name}.png`);
  await page.screenshot({ path: file });
  const bytes = statSync(file).size;
  expect(bytes).toBeGreaterThan(20_000);
  expect(bytes).toBeLessThan(largestBytes);
  expect(readFileSync(join(root, 'docs/console.md'), 'utf8')).toContain(`(pictures/${name}.png)`);
  expect(statSync(join(root, `docs/pictures/${name}.png`)).size).toBeLessThan(largestBytes);
  suite.expectSound();
});
