import { describe, expect, test } from '@jest/globals';
import { type CandidateIndex, CandidateIndexBuilder } from './candidate-index.ts';
import type { CandidatePage, WebhookCandidate } from './webhook-candidates.ts';

/** The candidate with this number, which wants events of one of so many countries. */
function candidate(number: number, country = number % 7): WebhookCandidate {
  return {
    place: number - 1,
    number,
    application: number % 13,
    subscriptionId: `sub_${number}`,
    endpointId: `ep_${number}`,
    applicationId: `app_${number % 13}`,
    url: 'https://customer.example/',
    retries: null,
    expiresAfterSeconds: null,
    shard: 0,
    applicationLimits: { perSecond: 1, perMinute: 1, perHour: 1 },
    filterExpression: null,
    labelFilters: { country: String(country) },
    labelFilterMode: 'all',
    transformId: null,
    lastFilterError: null,
  };
}

const page = (candidates: WebhookCandidate[], next: number | null = null, dormant: CandidatePage['dormant'] = []): CandidatePage => ({
  candidates,
  dormant,
  next,
  end: 1_000_000,
});

function indexOf(candidates: WebhookCandidate[], next: number | null = null): CandidateIndex {
  const builder = new CandidateIndexBuilder();
  for (let i = 0; i < candidates.length; i += 200) builder.add(page(candidates.slice(i, i + 200), i + 200 < candidates.length ? i : next));
  return builder.build();
}

/** Every number with what is wanted, whole or in a group. */
function content({ first, groups }: CandidateIndex): string[] {
  const whole = first.map(({ number, labelFilters }) => `${number} ${JSON.stringify(labelFilters)}`);
  const grouped = (groups ?? []).flatMap(({ criteria, numbers }) =>
    numbers.map((number) => `${number} ${JSON.stringify(criteria.labelFilters)}`),
  );
  return [...whole, ...grouped].sort();
}
const ofNumbers = (from: number, to: number): WebhookCandidate[] => Array.from({ length: to - from }, (_, i) => candidate(from + i));

test.each([
  ['few', 50],
  ['almost as many as are kept whole', 1995],
  ['more than are kept whole', 2600],
])('after changes an index of %s candidates knows what one that is made anew knows', (_, count) => {
  const now = new Map(ofNumbers(1, count + 1).map((each) => [each.number, each]));
  let index = indexOf([...now.values()]);
  let last = count;
  for (let step = 0; step < 40; step++) {
    const changed = Array.from({ length: 1 + (step % 5) }, (_each, i) => 1 + ((step * 613 + i * 997) % last));
    for (const number of changed) {
      if (step % 3 === 0) now.delete(number);
      else now.set(number, candidate(number, step));
    }
    for (let i = 0; i < 4; i++) now.set(++last, candidate(last, step));
    const all = [...changed, last, last - 1, last - 2, last - 3];
    index = index.changed(all, page(all.flatMap((number) => now.get(number) ?? [])));
  }
  const anew = indexOf([...now.values()].sort((one, other) => one.number - other.number));
  expect(content(index)).toEqual(content(anew));
  expect(index.coverage).toBe('all');
  expect(index.first.map(({ number }) => number)).toEqual(index.first.map(({ number }) => number).toSorted((one, other) => one - other));
  for (const { numbers } of index.groups ?? []) expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
});

test('the index knows the subscriptions of an application, also those that wait for it', () => {
  const index = indexOf(ofNumbers(1, 2601)).changed([5], page([], null, [{ number: 5, application: 5 }]));
  const own = Array.from({ length: 200 }, (_, i) => 5 + i * 13);
  expect(index.numbersOf(5).sort((one, other) => one - other)).toEqual(own.filter((number) => number <= 2600));
  expect(index.first.some(({ number }) => number === 5)).toBe(false);
});

describe('what is not known is no groups', () => {
  test('what is not known is no groups when the walk is not at its end', () => {
    const index = indexOf(ofNumbers(1, 2001), 2000);
    expect([index.coverage, index.groups, index.next]).toEqual(['first', null, 2000]);
    expect(index.changed([2500], page([candidate(2500)])).first).toHaveLength(2000);
  });

  test('what is not known is no groups when they want too many different things', () => {
    const index = indexOf(Array.from({ length: 22_100 }, (_, i) => candidate(i + 1, i)));
    expect([index.coverage, index.groups, index.next, index.first.length]).toEqual(['tooMany', null, 2000, 2000]);
    expect(index.size).toBeLessThan(2100);
  });
});
