import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { largeJson, mebibyte } from '../../test/support/large-payloads.ts';
import { lenientBy } from '../../test/support/lenient-clock.ts';
import { isPosthornError } from '../core/errors.ts';
import { parseJson } from '../core/read-json.ts';
import { largeForm } from './jobs.ts';
import { Sandbox } from './sandbox.ts';

/** A busy machine lets code compute for as long as it may until its deadline. */
const clock = lenientBy(6);
let sandbox: Sandbox;
beforeAll(() => {
  sandbox = new Sandbox({ clock, processes: 1 });
});
afterAll(() => sandbox.close());

const payload = largeJson(8 * mebibyte, { kind: 'large', amount: 5, order: { id: 'o-1' } });
const small = largeJson(1.1 * mebibyte, { kind: 'small' });
const filter = (field: string, operator: 'equals' | 'not_equals' | 'gt', value: unknown) => ({
  logic: 'AND' as const,
  conditions: [{ field, operator, value }],
});

describe('a payload above 1 MiB', () => {
  test('a payload above 1 MiB is evaluated by filters, of which each has its verdict, and gives the texts that are requested', async () => {
    const filters = [filter('kind', 'equals', 'large'), filter('amount', 'gt', 5), filter('headers.x-kind', 'equals', 'a')];
    const asked = { filters, headers: { 'x-kind': 'a' }, query: {}, fields: ['order.id', 'kind', 'amount', 'nothing', '__proto__'] };
    expect((await sandbox.evaluate({ organization: 'org_a' }, asked, payload)).evaluation).toEqual({
      verdicts: [true, false, true].map((isMet) => ({ isMet, decidedBy: isMet ? null : 0, isUntried: false })),
      fields: { 'order.id': 'o-1', kind: 'large' },
    });
  });

  test('a payload above 1 MiB is compared with the digits of numbers in filters', async () => {
    const price = parseJson('19.90');
    const large = parseJson('9007199254740993');
    const filters = [
      filter('price', 'equals', price),
      filter('price', 'not_equals', price),
      filter('id', 'equals', large),
      filter('id', 'gt', parseJson('9007199254740992')),
    ];
    const body = Buffer.from(`{"price":19.90,"id":9007199254740993,"x":"${'x'.repeat(2 * mebibyte)}"}`);
    const { evaluation } = await sandbox.evaluate({ organization: 'org_a' }, { filters, headers: {}, query: {}, fields: [] }, body);
    expect(evaluation?.verdicts.map(({ isMet }) => isMet)).toEqual([true, false, true, true]);
  });

  test('a payload above 1 MiB that is no JSON meets no filter that reads it', async () => {
    const asked = { filters: [filter('kind', 'equals', 'large')], headers: {}, query: {}, fields: ['kind'] };
    expect((await sandbox.evaluate({ organization: 'org_a' }, asked, Buffer.alloc(2 * mebibyte, 'x'))).evaluation).toEqual({
      verdicts: [{ isMet: false, decidedBy: 0, isUntried: false }],
      fields: {},
    });
  });

  test('a payload above 1 MiB leaves nothing behind for the next job, whatever its size', async () => {
    const transform = (body: Buffer) =>
      sandbox.transform(
        { organization: 'org_a' },
        { type: 'jsonata', code: '{"kind": payload.kind}' },
        { description: '{}', payload: body },
      );
    const outputs = [];
    for (const body of [payload, Buffer.from('{"kind":"small"}'), largeJson(2 * mebibyte, { kind: 'other' })])
      outputs.push((await transform(body)).output?.body);
    expect(outputs).toEqual(['{"kind":"large"}', '{"kind":"small"}', '{"kind":"other"}']);
  });

  test('a payload above 1 MiB does not keep small ones waiting', async () => {
    const endless = '(() => { for (;;); })()';
    const order: string[] = [];
    const large = sandbox
      .transform({ organization: 'org_a' }, { type: 'javascript', code: endless }, { description: '{}', payload })
      .then(({ problem }) => order.push(problem === undefined ? 'done' : 'large stopped'));
    const small = sandbox
      .transform({ organization: 'org_a' }, { type: 'jsonata', code: '1' }, { description: '{}', payload: Buffer.from('{}') })
      .then(() => order.push('small'));
    await Promise.all([large, small]);
    expect(order).toEqual(['small', 'large stopped']);
  });

  test('a payload above 1 MiB waits its turn, the organizations one after the other, and is refused beyond what may wait', async () => {
    const order: string[] = [];
    const evaluate = (organization: string): Promise<unknown> =>
      sandbox.evaluate({ organization }, { filters: [], headers: {}, query: {}, fields: ['kind'] }, payload).then(
        () => order.push(organization),
        (error: unknown) => Promise.reject(error),
      );
    const waits = Math.floor(largeForm.waitingBytesOfOrganization / payload.length);
    const waiting = Array.from({ length: 1 + waits }, () => evaluate('org_a'));
    await expect(evaluate('org_a')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    waiting.push(evaluate('org_b'));
    await Promise.all(waiting);
    expect(order.indexOf('org_b')).toBeLessThan(3);
  });

  test('a payload above 1 MiB of one source does not wait for all those of another source of its organization, which leave slots to it', async () => {
    const order: string[] = [];
    const evaluate = async (part: string): Promise<void> => {
      await sandbox.evaluate({ organization: 'org_a', part }, { filters: [], headers: {}, query: {}, fields: ['kind'] }, small);
      order.push(part);
    };
    const [greedy, refused] = [[] as Promise<void>[], [] as unknown[]];
    // One is under way; of the 43 waiting slots, a source gets what leaves some to its siblings.
    for (let i = 0; i < 1 + 43; i++) greedy.push(evaluate('src_a').catch((error: unknown) => void refused.push(error)));
    const sibling = evaluate('src_b');
    await sibling;
    expect(order.length).toBeLessThanOrEqual(3);
    await Promise.all(greedy);
    expect(refused).toHaveLength(10);
  });

  test('payloads above 1 MiB of one source that wait leave memory to those of another source of its organization', async () => {
    const evaluate = (part: string): Promise<string> =>
      sandbox.evaluate({ organization: 'org_a', part }, { filters: [], headers: {}, query: {}, fields: ['kind'] }, payload).then(
        () => 'evaluated',
        (error: unknown) => (isPosthornError(error) ? error.code : 'broken'),
      );
    // One is under way, and 64 of 86 MiB wait.
    const greedy = Array.from({ length: 1 + 8 + 1 }, () => evaluate('src_a'));
    expect(await evaluate('src_b')).toBe('evaluated');
    expect((await Promise.all(greedy)).filter((each) => each === 'UNAVAILABLE')).toHaveLength(1);
  });

  test('a payload above 1 MiB whose sender has hung up is not evaluated', async () => {
    const ending = new AbortController();
    const asked = { filters: [], headers: {}, query: {}, fields: ['kind'] };
    const first = sandbox.evaluate({ organization: 'org_a' }, asked, payload);
    const second = sandbox.evaluate({ organization: 'org_a' }, asked, payload, { signal: ending.signal });
    ending.abort();
    await expect(second).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await first;
  });
});
