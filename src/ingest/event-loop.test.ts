import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { IngestUnderTest } from '../../test/support/ingest.ts';
import { expectShortTurns } from '../../test/support/short-work.ts';
import type { FilterCondition } from '../core/records.ts';

/** No event may hold up all others for longer. */
const goalMs = 100;
const urlEncoded = 'application/x-www-form-urlencoded';
const payloadLimitBytes = 1024 * 1024;
let ingest: IngestUnderTest;
beforeAll(async () => {
  ingest = await IngestUnderTest.start();
});
afterAll(() => ingest.stop());
beforeEach(() => ingest.reset());

const list = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);
const members = (count: number): Record<string, number> => Object.fromEntries(Array.from({ length: count }, (_, i) => [`member${i}`, 1]));

/** Letters `a` and `b` in no order. */
function mixed(length: number): string {
  let seed = 1;
  return Array.from({ length }, () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed < 2 ** 30 ? 'a' : 'b';
  }).join('');
}

interface Input {
  condition: Pick<FilterCondition, 'operator' | 'value'>;
  conditions?: number;
  routes?: number;
  a: unknown;
}

const inputs: [what: string, input: Input][] = [
  [
    'an event of 78,000 objects that have nothing in common',
    { condition: { operator: 'exists', value: undefined }, conditions: 1, a: Array.from({ length: 78_000 }, (_, i) => ({ [`k${i}`]: 1 })) },
  ],
  [
    '1,000 objects that are compared with one of 60,000 members',
    { condition: { operator: 'in', value: list(1000, {}) }, a: members(60_000) },
  ],
  [
    '1,000 lists that are compared with a list of 60,000 members',
    { condition: { operator: 'not_in', value: list(1000, [{}]) }, a: [members(60_000)] },
  ],
  [
    '1,000 numbers that are compared with a text of 900,000 digits',
    { condition: { operator: 'in', value: list(1000, 7) }, a: '1'.repeat(900_000) },
  ],
  [
    'a text of 90,000 digits that is compared with 400,000 numbers',
    { condition: { operator: 'contains', value: '1'.repeat(90_000) }, a: list(400_000, 7) },
  ],
  ['5 routes that look for a number among 400,000', { condition: { operator: 'contains', value: '5' }, routes: 5, a: list(400_000, 7) }],
  ['a text of 900,000 digits whose order is asked for', { condition: { operator: 'gt', value: '5' }, routes: 20, a: '1'.repeat(900_000) }],
  [
    'a text of 900,000 letters in which one with the same letters is looked for',
    { condition: { operator: 'contains', value: `${'a'.repeat(5000)}b${'a'.repeat(5000)}` }, conditions: 3, a: 'a'.repeat(900_000) },
  ],
  [
    'a text that is nearly the one that is looked for, again and again',
    { condition: { operator: 'not_contains', value: `${'ab'.repeat(2500)}b${'ab'.repeat(2500)}` }, conditions: 1, a: 'ab'.repeat(450_000) },
  ],
  [
    '20 routes with patterns that take long',
    { condition: { operator: 'matches', value: '[ab]{900}' }, conditions: 1, routes: 20, a: 'ab'.repeat(2000) },
  ],
  [
    '20 routes with patterns that match at the end of a text, of which each place has a state of its own',
    { condition: { operator: 'matches', value: '[ab]*a[ab]{200}[cd]' }, conditions: 1, routes: 20, a: `${mixed(4500)}c` },
  ],
  [
    '20 routes with patterns that take long to compile',
    { condition: { operator: 'matches', value: '\\pL'.repeat(300) }, conditions: 1, routes: 20, a: 'x' },
  ],
];

test.each(inputs)('No turn of the event loop is long for %s.', async (_what, { condition, conditions = 50, routes = 1, a }) => {
  await ingest.publishSource({ payloadLimitBytes });
  for (let i = 0; i < routes; i++) {
    const filter = { logic: 'OR' as const, conditions: list(conditions, { field: 'a', ...condition }) };
    await ingest.publishRoute({ id: `rte_${i}`, slug: `r${i}`, filter });
  }
  await ingest.publishRoute({ id: 'rte_all', slug: 'all' });
  const body = JSON.stringify({ a });
  const statuses: number[] = [];
  const send = async (): Promise<void> => void statuses.push((await ingest.send('/ingest/acme/github', { body })).status);
  await expectShortTurns(goalMs, send);
  expect(new Set(statuses)).toEqual(new Set([200]));
});

const multipart = 'multipart/form-data; boundary=x';
const partOf = (disposition: string): string => `--x\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n1\r\n--x--`;
test.each([
  ['a form of plus signs', urlEncoded, `a=${'+'.repeat(1_000_000)}`],
  ['a form of escaped bytes', urlEncoded, `a=${'%ff'.repeat(340_000)}`],
  ['a form with a name of escaped quotes', multipart, partOf(`name="${'\\"'.repeat(500_000)}"`)],
  ['a form with a name of quotes in percent', multipart, partOf(`name="${'%22'.repeat(340_000)}"`)],
  [
    'a form of parts whose quotes do not end',
    multipart,
    `${`--x\r\nContent-Disposition: form-data; name=a; x="${'\\"'.repeat(4000)}\r\n\r\n1\r\n`.repeat(120)}--x--`,
  ],
  [
    'numbers in bytes that are no text',
    'application/json',
    Buffer.concat([Buffer.from('["'), Buffer.from([0xff]), Buffer.from(`"${',1.0'.repeat(250_000)}]`)]),
  ],
  ['256 KiB of numbers', 'application/json', `[${'1.0,'.repeat(65_000)}1]`],
  ['a form of parts that nearly end', multipart, partOf(`name="a"\r\n\r\n${'\r\n-'.repeat(340_000)}`)],
])('No turn of the event loop is long for %s.', async (_what, type, body) => {
  await ingest.publishSource({ payloadLimitBytes });
  await ingest.publishRoute({ filter: { logic: 'OR', conditions: [{ field: 'a', operator: 'exists' }] } });
  const statuses: number[] = [];
  const send = async (): Promise<void> =>
    void statuses.push((await ingest.send('/ingest/acme/github', { body, headers: { 'content-type': type } })).status);
  await expectShortTurns(goalMs, send);
  expect(new Set(statuses)).toEqual(new Set([200]));
});

test('No turn of the event loop is long for a form of 70,000 fields that nobody has signed, before Twilio’s signature is refused.', async () => {
  await ingest.publishSignedSource({ provider: 'twilio', payloadLimitBytes });
  const body = Object.keys(members(70_000)).join('=&');
  const headers = { 'content-type': 'application/x-www-form-urlencoded', 'x-twilio-signature': Buffer.alloc(20).toString('base64') };
  const statuses: number[] = [];
  const send = async (): Promise<void> => void statuses.push((await ingest.send('/ingest/acme/github', { body, headers })).status);
  await expectShortTurns(goalMs, send);
  expect(new Set(statuses)).toEqual(new Set([401]));
});
