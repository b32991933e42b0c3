import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.ts';
import { consoleSuite } from './console-suite.ts';

const suite = consoleSuite();
const { made, open, expectSound } = suite;
const fact = (page: Page, name: string) => page.locator(`dt:text-is("${name}") + dd`);

test('the facts of a destination and of an event type say when messages expire', async () => {
  const destination = await made('destinations', { name: 'Slow', url: 'https://customer.example/', expiresAfterSeconds: 86_400 });
  const type = await made('event-types', { name: 'login.code', expiresAfterSeconds: 300 });
  const page = await open(`o/default/targets/${destination}`);
  await fact(page, 'Expiry').waitFor();
  expect(await fact(page, 'Expiry').textContent()).toBe('messages expire after 1 d');
  expectSound();
  await page.close();
  const types = await open(`o/default/event-types?at=${type}`);
  await fact(types, 'Expiry').waitFor();
  expect(await fact(types, 'Expiry').textContent()).toBe('messages expire after 5 min');
  expectSound();
});

test('a message that waits shows when it expires', async () => {
  const applicationId = await made('webhook-applications', { name: 'Acme' });
  const endpointId = await made('webhook-endpoints', { applicationId, url: 'https://customer.example/' });
  const eventTypeId = await made('event-types', { name: 'order.paid' });
  await made('webhook-subscriptions', { endpointId, eventTypeId });
  const sent = { eventType: 'order.paid', payload: {}, delaySeconds: 3600, expiresAfterSeconds: 60 };
  const { body } = await eventually('the event to be taken', 20_000, async () => {
    const answer = await suite.rest.send('POST', '/api/send-event', sent);
    return answer.body.data?.messagesQueued === 1 && answer;
  });
  const event = await suite.rest.send('GET', `/api/webhook-events/${body.data.eventId}`);
  const [{ id }] = event.body.data.messages;
  const page = await open(`o/default/messages/${id}`);
  await fact(page, 'Expires').waitFor();
  const { expiresAt } = (await suite.rest.send('GET', `/api/outbound-messages/${id}`)).body.data;
  expect(await fact(page, 'Expires').locator('time').getAttribute('datetime')).toBe(expiresAt);
  expectSound();
});
