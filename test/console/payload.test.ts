import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { z } from 'zod';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { consoleSuite } from './console-suite.ts';

const accepted = z.object({ eventId: z.string() });
const manifests = mkdtempSync(join(tmpdir(), 'posthorn-manifests-'));
const payloadBytes = 8 * 1024 * 1024;
const organization = { kind: 'Organization', metadata: { name: 'default' }, spec: { namespace: 'default', limits: { payloadBytes } } };
writeFileSync(join(manifests, 'organization.json'), JSON.stringify({ apiVersion: 'posthorn.dev/v1alpha1', ...organization }));

const suite = consoleSuite({ environment: { POSTHORN_MAX_PAYLOAD_BYTES: String(payloadBytes) }, args: ['--manifests', manifests] });
const { made, open, expectSound } = suite;
afterAll(() => rmSync(manifests, { recursive: true }));

const post = (body: string | Buffer, contentType: string): Promise<Response> =>
  fetch(`${suite.standalone.url}/ingest/default/shop`, { method: 'POST', body, headers: { 'content-type': contentType } });
const sent = async (...event: Parameters<typeof post>): Promise<string> => {
  const response = await post(...event);
  expect(response.status).toBe(200);
  return accepted.parse(await response.json()).eventId;
};

test('a payload of 5 MB is read while the page answers, is searched, and has the digits and the paths of its values', async () => {
  await made('sources', { name: 'shop' });
  const item = (i: number) => `{"id":12345678901234567890,"name":"item ${i}","note":"${'x'.repeat(60)}"}`;
  const body = `{"items":[${Array.from({ length: 48_000 }, (_, i) => item(i)).join(',')}]}`;
  expect(body.length).toBeGreaterThan(5_000_000);
  // The limit of the organization is in force once its record is read.
  const id = await eventually('the payload to be taken', 60_000, async () => {
    const response = await post(body, 'application/json');
    return response.status === 200 ? accepted.parse(await response.json()).eventId : undefined;
  });
  const page = await open(`o/default/events/${id}`, { permissions: ['clipboard-read', 'clipboard-write'] });
  await page.getByRole('button', { name: 'Read all of it' }).waitFor();
  await page.evaluate(`{
    let last = performance.now();
    window.longestGap = 0;
    setInterval(() => {
      const now = performance.now();
      window.longestGap = Math.max(window.longestGap, now - last);
      last = now;
    }, 20);
  }`);
  await page.getByRole('button', { name: 'Read all of it' }).click();
  await page.getByRole('button', { name: 'Read all of it' }).waitFor({ state: 'detached' });
  const search = page.getByLabel('Search the payload');
  await search.fill('item 47999');
  await page.getByText('1 of 1', { exact: true }).waitFor();
  const tree = page.getByRole('tree', { name: 'Payload as a tree' });
  await tree.getByText('12345678901234567890').first().waitFor();
  await page.getByRole('button', { name: 'Copy path' }).click();
  await page.getByText('Copied').waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe('payload.items[47999].name');
  // A frozen page would be blocked for as long as all of it takes.
  expect(await page.evaluate('window.longestGap')).toBeLessThan(1500);
  await page.getByRole('button', { name: 'Hex' }).click();
  await page.getByLabel('Payload as bytes').getByText('00000000').waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  expectSound();
}, 240_000);

test('forms are shown as fields, XML in lines, and bytes that are no text as bytes', async () => {
  const shown = async (body: string | Buffer, contentType: string) => {
    const page = await open(`o/default/events/${await sent(body, contentType)}`);
    return page.locator('.payload');
  };
  const form = await shown('total=20&note=%3Cb%3E', 'application/x-www-form-urlencoded');
  await form.getByLabel('Payload as fields').getByText('<b>').waitFor();
  const xml = await shown('<order><total>20</total><note/></order>', 'application/xml');
  await xml.getByLabel('Payload as text').getByText('<total>20</total>', { exact: true }).waitFor();
  const image = await shown(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0xff]), 'image/png');
  await image.getByText('89 50 4e 47 00 ff').waitFor();
  expect(await image.getByRole('button', { name: 'Text' }).count()).toBe(0);
  expectSound();
}, 120_000);
