import { expect, test } from '@jest/globals';
import { consoleSuite } from './console-suite.ts';

const suite = consoleSuite();
const { made, open, expectSound } = suite;

test('the facts of an endpoint say when it is tried again and what counts as success', async () => {
  const applicationId = await made('webhook-applications', { name: 'Acme' });
  const own = { retryDelays: [5, 60], successStatusCodes: ['2xx', 409] };
  const endpoint = await made('webhook-endpoints', { applicationId, url: 'https://customer.example/', ...own });
  const page = await open(`o/default/targets/${endpoint}`);
  const facts = page.getByRole('region', { name: 'Facts' });
  const fact = (name: string) => facts.locator(`dt:text-is("${name}") + dd`);
  await facts.waitFor();
  expect(await fact('Retries').textContent()).toBe('2, after 5.0 s, 1 min');
  expect(await fact('Success').textContent()).toBe('2xx, 409');
  await suite.rest.send('PATCH', `/api/webhook-endpoints/${endpoint}`, { retryDelays: null, successStatusCodes: null });
  await page.reload();
  await facts.waitFor();
  expect(await fact('Retries').textContent()).toBe('as the installation has them');
  expect(await fact('Success').textContent()).toBe('any 2xx');
  expectSound();
});
