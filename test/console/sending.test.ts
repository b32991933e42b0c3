import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { accessibilityViolations } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';
import { loseAnswer } from './lost-answer.ts';

const suite = consoleSuite({ environment: { POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true' } });
const { made, open, expectSound } = suite;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver?.close());

const read = async (path: string) => (await suite.rest.send('GET', `/api/${path}`)).body.data;

/** An application with an endpoint that subscribes to a new event type. */
async function subscribed(name: string, url = receiver.url): Promise<{ applicationId: string; endpointId: string; eventTypeId: string }> {
  const applicationId = await made('webhook-applications', { name });
  const endpointId = await made('webhook-endpoints', { applicationId, url });
  const eventTypeId = await made('event-types', { name, examplePayload: '{"id": "o-17"}' });
  await made('webhook-subscriptions', { endpointId, eventTypeId });
  return { applicationId, endpointId, eventTypeId };
}

async function opened(page: Page): Promise<Locator> {
  await page.getByRole('button', { name: 'Send event…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Send an event' });
  await dialog.getByLabel('Payload').waitFor();
  return dialog;
}
/** The dialog has read the chosen event type. */
const hasExample = (dialog: Locator): Promise<void> =>
  eventually(async () => expect(await dialog.getByLabel('Payload').inputValue()).toBe('{"id": "o-17"}'));
/** In UTC, as a field of the browser has it. */
const minuteIn = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 16);
const stored = (page: Page): Locator => page.getByRole('dialog', { name: 'The event is stored' });

test('an event that is sent from an application reaches its endpoint with the payload as it was typed', async () => {
  const { applicationId, eventTypeId, endpointId } = await subscribed('order.paid');
  const page = await open(`o/default/applications?at=${applicationId}`);
  const dialog = await opened(page);
  await dialog.getByLabel('Event type').selectOption(eventTypeId);
  await hasExample(dialog);
  await dialog.getByLabel('Payload').fill('{"total": }');
  await dialog.getByRole('button', { name: 'Send event' }).click();
  await dialog.getByText('The payload is not JSON.').waitFor();
  expect(receiver.requests).toEqual([]);
  const payload = '{"total": 1.50, "id": 12345678901234567890}';
  await dialog.getByLabel('Payload').fill(payload);
  await dialog.getByRole('button', { name: 'Send event' }).click();
  await stored(page).getByText('1 message is queued.').waitFor();
  const [request] = await receiver.arrived(1);
  expect(request?.body.toString()).toBe(payload);
  await stored(page).getByRole('link', { name: receiver.url }).waitFor();
  expect(await read(`outbound-messages?endpointId=${endpointId}`)).toMatchObject([{ applicationId, eventType: 'order.paid' }]);
  expectSound();
});

test('an event that is scheduled from its type waits until its time, and is taken back there', async () => {
  const { eventTypeId, endpointId } = await subscribed('order.later');
  const page = await open(`o/default/event-types?at=${eventTypeId}`);
  const dialog = await opened(page);
  await dialog.getByRole('button', { name: 'After a delay' }).click();
  await dialog.getByLabel('Delay', { exact: true }).fill('8');
  await dialog.getByLabel('Unit of the delay').selectOption('days');
  await dialog.getByRole('button', { name: 'Schedule event' }).click();
  await dialog.getByText('The delay is more than 7 days.').waitFor();
  await dialog.getByLabel('Delay', { exact: true }).fill('2');
  await dialog.getByRole('button', { name: 'Schedule event' }).click();
  await stored(page).getByText('1 message is queued.').waitFor();
  const [message] = await read(`outbound-messages?endpointId=${endpointId}`);
  expect(message).toMatchObject({ status: 'pending', waitingFor: 'scheduled' });
  const { deliverAt, createdAt } = await read(`webhook-events/${message.eventId}`);
  expect(Date.parse(deliverAt) - Date.parse(createdAt)).toBe(2 * 86_400_000);
  expect(await stored(page).locator('dt:text-is("Scheduled for") + dd time').getAttribute('datetime')).toBe(deliverAt);
  await stored(page).getByRole('button', { name: 'Cancel waiting…' }).click();
  const cancel = page.getByRole('dialog', { name: 'Cancel messages that wait' });
  await cancel.getByRole('button', { name: 'Cancel 1 message' }).click();
  await cancel.getByText('1 is cancelled.', { exact: false }).waitFor();
  expect(await read(`outbound-messages/${message.id}`)).toMatchObject({ status: 'dlq', lastErrorType: 'cancelled', attempts: 0 });
  expectSound();
});

test('an event for a time is scheduled in the zone of the reader, and a second press after a lost answer makes no second event', async () => {
  const { endpointId, eventTypeId } = await subscribed('order.once');
  const page = await open('o/default/messages');
  const dialog = await opened(page);
  await dialog.getByLabel('Event type').selectOption(eventTypeId);
  await hasExample(dialog);
  await dialog.getByRole('button', { name: 'At a time' }).click();
  await dialog.getByRole('button', { name: 'Schedule event' }).click();
  await dialog.getByText('Choose a time.').waitFor();
  const at = minuteIn(1);
  await dialog.getByLabel('Time (UTC)').fill(at);
  await loseAnswer(page, '/send-event');
  await dialog.getByRole('button', { name: 'Schedule event' }).click();
  await dialog.getByText('It is unknown whether this was done.').waitFor();
  await dialog.getByRole('button', { name: 'Schedule event' }).click();
  await stored(page).getByText('1 message is queued.').waitFor();
  const messages = await read(`outbound-messages?endpointId=${endpointId}`);
  expect(messages).toHaveLength(1);
  expect((await read(`webhook-events/${messages[0].eventId}`)).deliverAt).toBe(`${at}:00.000Z`);
});

test('an event that no subscription takes reports it', async () => {
  const eventTypeId = await made('event-types', { name: 'order.nobody' });
  const page = await open(`o/default/event-types?at=${eventTypeId}`);
  const dialog = await opened(page);
  await dialog.getByRole('button', { name: 'Send event' }).click();
  await stored(page).getByText('No subscription matches it').waitFor();
  expect(await stored(page).getByRole('button', { name: 'Cancel waiting…' }).count()).toBe(0);
  expectSound();
});

test('what the API says of the payload is shown, and what was typed stays while the dialog is closed', async () => {
  const schema = '{"type": "object", "required": ["id"]}';
  const eventTypeId = await made('event-types', { name: 'order.checked', schema });
  const page = await open(`o/default/event-types?at=${eventTypeId}`);
  const dialog = await opened(page);
  await dialog.getByLabel('Payload').fill('{"total": 2}');
  await dialog.getByRole('button', { name: 'Send event' }).click();
  await dialog.getByText('The payload breaks the schema of order.checked.').waitFor();
  await dialog.getByRole('listitem').filter({ hasText: "must have required property 'id'" }).waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  expect(await (await opened(page)).getByLabel('Payload').inputValue()).toBe('{"total": 2}');
});

test('the command that sends a test event to a source has the header that schedules it', async () => {
  const source = await made('sources', { name: 'shop' });
  const page = await open(`o/default/sources?at=${source}`);
  const command = page.getByRole('region', { name: 'Command' });
  await command.waitFor();
  expect(await command.textContent()).not.toContain('x-posthorn-');
  await page.getByRole('button', { name: 'After a delay' }).click();
  await page.getByText("-H 'x-posthorn-delay-seconds: 3600'", { exact: false }).waitFor();
  await page.getByRole('button', { name: 'At a time' }).click();
  const at = minuteIn(1);
  await page.getByLabel('Time (UTC)').fill(at);
  await page.getByText(`-H 'x-posthorn-deliver-at: ${at}:00.000Z'`, { exact: false }).waitFor();
  await page.getByLabel('Time (UTC)').fill(minuteIn(8));
  await page.getByText('within 7 days', { exact: false }).waitFor();
  expect(await command.count()).toBe(0);
  expectSound();
});

const testDialog = async (page: Page): Promise<Locator> => {
  await page.getByRole('button', { name: 'Send test…' }).click();
  return page.getByRole('dialog', { name: 'Send a test' });
};
const bodiesAt = (path: string): string[] => receiver.requests.filter((each) => each.path === path).map(({ body }) => body.toString());
/** What has arrived there is this. */
const arrivedAt = (path: string, bodies: readonly string[]): Promise<void> =>
  eventually(async () => expect(bodiesAt(path)).toEqual(bodies));
const hasPayload = (dialog: Locator, payload: string): Promise<void> =>
  eventually(async () => expect(await dialog.getByLabel('Payload', { exact: true }).inputValue()).toBe(payload));

test('a test of a destination sends what is typed, with all digits, or the payload of a recent event', async () => {
  const source = await made('sources', { name: 'lamps' });
  const destination = await made('destinations', { name: 'lamp keeper', url: `${receiver.url}/lamps` });
  await made('routes', { name: 'lamps', sourceId: source, destinationIds: [destination] });
  const payload = '{"lamp": 1.50, "id": 12345678901234567890}';
  const { body } = await suite.rest.send('GET', `/api/sources/${source}`);
  const headers = { 'content-type': 'application/json' };
  await fetch(`${suite.standalone.url}/ingest/default/${body.slug}`, { method: 'POST', headers, body: payload });
  await arrivedAt('/lamps', [payload]);
  const page = await open(`o/default/targets/${destination}`);
  const dialog = await testDialog(page);
  await dialog.getByLabel('Payload of').selectOption('My own');
  await dialog.getByLabel('Payload', { exact: true }).fill('[1]');
  await dialog.getByRole('button', { name: 'Send test' }).click();
  await dialog.getByText('A test of a destination takes a JSON object.').waitFor();
  const own = '{"own": 2.50, "id": 12345678901234567890}';
  await dialog.getByLabel('Payload', { exact: true }).fill(own);
  await dialog.getByRole('button', { name: 'Send test' }).click();
  await dialog.getByText('Delivered').waitFor();
  expect(bodiesAt('/lamps')).toEqual([payload, own]);
  await dialog.getByLabel('Payload of').selectOption('A recent event');
  await dialog.getByLabel('Event', { exact: true }).selectOption({ index: 1 });
  await hasPayload(dialog, payload);
  await dialog.getByRole('button', { name: 'Send again' }).click();
  await arrivedAt('/lamps', [payload, own, payload]);
  expect(await accessibilityViolations(page)).toEqual([]);
  expectSound();
});

test('a test of an endpoint sends the example of an event type, also as it was edited, or the payload of a recent event', async () => {
  const { endpointId, eventTypeId } = await subscribed('order.tested', `${receiver.url}/tested`);
  await suite.rest.send('POST', '/api/send-event', { eventType: 'order.tested', payload: { total: 7 } });
  await arrivedAt('/tested', ['{"total":7}']);
  const page = await open(`o/default/targets/${endpointId}`);
  const dialog = await testDialog(page);
  await dialog.getByLabel('Event type').selectOption(eventTypeId);
  await hasPayload(dialog, '{"id": "o-17"}');
  await dialog.getByRole('button', { name: 'Send test' }).click();
  await dialog.getByText('Delivered').waitFor();
  expect(receiver.requests.at(-1)?.headers).toMatchObject({ 'x-posthorn-test': 'true' });
  await dialog.getByLabel('Payload', { exact: true }).fill('{"id": 1.10}');
  await dialog.getByRole('button', { name: 'Send again' }).click();
  await arrivedAt('/tested', ['{"total":7}', '{"id": "o-17"}', '{"id": 1.10}']);
  await dialog.getByText('Delivered').waitFor();
  await dialog.getByLabel('Payload of').selectOption('A recent event');
  await dialog.getByLabel('Event', { exact: true }).selectOption({ index: 1 });
  await hasPayload(dialog, '{"total":7}');
  await dialog.getByRole('button', { name: 'Send again' }).click();
  await arrivedAt('/tested', ['{"total":7}', '{"id": "o-17"}', '{"id": 1.10}', '{"total":7}']);
  expectSound();
});
