import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';

const suite = consoleSuite();
const { made, sent, open, expectSound } = suite;
let receiver: Receiver;
let isDown = true;
beforeAll(async () => {
  receiver = await startReceiver((response) => response.writeHead(isDown ? 503 : 200).end());
});
afterAll(() => receiver?.close());

test('what two of three destinations have failed to take is replayed from the list of the two', async () => {
  const retryPolicy = { maxRetries: 1, initialDelay: 100, maxDelay: 100, backoffMultiplier: 1 };
  await made('sources', { name: 'regions' });
  for (const name of ['north', 'south', 'west']) {
    await made('destinations', { name, url: receiver.url, retryPolicy });
    await made('routes', { name: `regions to ${name}`, sourceId: 'regions', destinationIds: [name] });
  }
  await sent('regions', { total: 1 });
  const list = async (query: string) => (await suite.rest.send('GET', `/api/deliveries?${query}`)).body.data;
  await eventually(async () => expect(await list('destinationId=north,south,west&status=dlq')).toHaveLength(3));
  isDown = false;
  const page = await open('o/default/dead-letters?destinationId=north,south');
  await page.getByText('2 dead letters').waitFor();
  await page.getByRole('button', { name: 'Replay…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Replay 2 deliveries' }).click();
  await page.waitForURL('**/replays/rep_*');
  await page.getByText('Succeeded').first().waitFor();
  expect(await list('destinationId=north&status=delivered')).toHaveLength(1);
  expect(await list('destinationId=south&status=delivered')).toHaveLength(1);
  expect(await list('destinationId=west&status=delivered')).toEqual([]);
  expectSound();
});
