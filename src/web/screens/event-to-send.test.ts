import { expect, test } from '@jest/globals';
import { type EventDraft, eventToSend } from './event-to-send.ts';
import { deliveredNow } from './send-time.ts';

const draft: EventDraft = { eventTypeId: 'etp_1', applicationId: '', payload: null, when: deliveredNow, expiry: '' };
const made = (changes: Partial<EventDraft> = {}, payload = '{"total": 1.50}') =>
  eventToSend({ draft: { ...draft, ...changes }, eventType: 'order.paid', payload, zone: 'UTC' });

test.each<[string, Partial<EventDraft>, string]>([
  ['nothing else', {}, '{"eventType":"order.paid","payload":{"total": 1.50}}'],
  ['an application', { applicationId: 'app_1' }, '{"eventType":"order.paid","applicationId":"app_1","payload":{"total": 1.50}}'],
  [
    'a delay',
    { when: { ...deliveredNow, kind: 'delay', amount: '2', unit: 'days' } },
    '{"eventType":"order.paid","delaySeconds":172800,"payload":{"total": 1.50}}',
  ],
  [
    'a time',
    { when: { ...deliveredNow, kind: 'at', at: '2026-01-31T14:05' } },
    '{"eventType":"order.paid","deliverAt":"2026-01-31T14:05:00.000Z","payload":{"total": 1.50}}',
  ],
  ['an expiry', { expiry: '60' }, '{"eventType":"order.paid","expiresAfterSeconds":60,"payload":{"total": 1.50}}'],
])('an event with %s keeps the payload as it was typed', (_, changes, body) => {
  expect(made(changes)).toEqual({ body });
});

test.each<[string, Partial<EventDraft>, string | undefined]>([
  ['Choose an event type.', { eventTypeId: '' }, undefined],
  ['The payload is not JSON.', {}, '{"total": }'],
  ['The payload is not JSON.', {}, ''],
  ['The delay is not a whole number.', { when: { ...deliveredNow, kind: 'delay', amount: '1.5' } }, undefined],
  ['The delay is not a whole number.', { when: { ...deliveredNow, kind: 'delay', amount: '' } }, undefined],
  ['The delay is more than 7 days.', { when: { ...deliveredNow, kind: 'delay', amount: '169' } }, undefined],
  ['Choose a time.', { when: { ...deliveredNow, kind: 'at', at: '' } }, undefined],
  ['The expiry is not a whole number of seconds.', { expiry: 'soon' }, undefined],
])('an event is not sent: %s', (problem, changes, payload) => {
  expect(made(changes, payload)).toEqual({ problem });
});

test('a payload that would end the body early is not JSON', () => {
  expect(made({}, '1,"eventType":"order.refused"')).toEqual({ problem: 'The payload is not JSON.' });
});
