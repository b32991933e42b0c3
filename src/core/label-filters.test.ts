import { expect, test } from '@jest/globals';
import { type LabelFilterMode, type LabelFilters, matchesLabels, unmetLabels } from './label-filters.ts';

const labels = { tier: 'gold', region: 'eu', shop: 7, test: false, tags: ['a'] };

test.each<[LabelFilters, LabelFilterMode, boolean]>([
  [{}, 'all', true],
  [{}, 'any', true],
  [{ tier: 'gold' }, 'all', true],
  [{ tier: 'Gold' }, 'all', false],
  [{ tier: ['silver', 'gold'] }, 'all', true],
  [{ tier: ['silver'] }, 'all', false],
  [{ tier: [] }, 'all', false],
  [{ tier: 'gold', region: 'eu' }, 'all', true],
  [{ tier: 'gold', region: 'us' }, 'all', false],
  [{ tier: 'gold', region: 'us' }, 'any', true],
  [{ tier: 'silver', region: ['us', 'ap'] }, 'any', false],
  [{ shop: '7', test: 'false' }, 'all', true],
  [{ tags: 'a' }, 'all', false],
  [{ missing: 'x' }, 'any', false],
  [{ constructor: 'x' }, 'all', false],
])('filters %j in mode %s match: %s', (filters, mode, isMet) => {
  expect(matchesLabels(filters, mode, labels)).toBe(isMet);
});

test.each<[LabelFilters, LabelFilterMode, string[]]>([
  [{ tier: 'silver', region: 'us' }, 'all', ['tier']],
  [{ tier: 'silver', missing: 'x' }, 'any', ['tier', 'missing']],
  [{ tier: 'gold', region: 'us' }, 'any', []],
])('the filters %j in mode %s leave %j unmet', (filters, mode, unmet) => {
  expect(unmetLabels(filters, mode, labels).map(({ label }) => label)).toEqual(unmet);
});
