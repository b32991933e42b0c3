import { describe, expect, test } from '@jest/globals';
import { LatencyHistogram, latencyBucket } from './latency-histogram.ts';

/** Repeatable pseudo-random numbers from 0 to 1 (mulberry32). */
function randoms(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function histogramOf(durations: readonly number[]): LatencyHistogram {
  const histogram = new LatencyHistogram();
  for (const ms of durations) histogram.add(latencyBucket(ms));
  return histogram;
}

function exact(durations: readonly number[], share: number): number {
  const sorted = durations.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

const shares = [0, 0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1];
const shapes: readonly (readonly [string, (random: () => number) => number])[] = [
  ['even', (random) => 1 + random() * 60_000],
  ['skewed', (random) => 1 + random() ** 8 * 60_000],
  ['of two kinds', (random) => (random() < 0.9 ? 3 + random() * 4 : 29_000 + random() * 2000)],
  ['all alike', () => 137],
];

describe('quantiles', () => {
  test.each(shapes)('of %s durations are within 5 %% of the exact ones', (_, next) => {
    for (let seed = 1; seed <= 25; seed++) {
      const random = randoms(seed);
      const durations = Array.from({ length: 1 + Math.floor(random() * 3000) }, () => next(random));
      const histogram = histogramOf(durations);
      for (const share of shares) {
        const truth = exact(durations, share);
        expect(Math.abs((histogram.quantile(share) ?? 0) - truth) / truth).toBeLessThanOrEqual(0.05);
      }
    }
  });

  test('of nothing are none', () => {
    expect(new LatencyHistogram().quantile(0.5)).toBeNull();
  });

  test('up to a millisecond are one millisecond', () => {
    expect(histogramOf([0, 0.2, 1]).quantile(0.99)).toBe(1);
  });
});

test('two histograms merge into the histogram of both', () => {
  for (let seed = 1; seed <= 25; seed++) {
    const random = randoms(seed);
    const [one, other] = [500, 300].map((length) => Array.from({ length }, () => 1 + random() ** 5 * 60_000));
    const merged = histogramOf(one ?? []);
    merged.merge(histogramOf(other ?? []));
    const both = histogramOf([...(one ?? []), ...(other ?? [])]);
    expect(merged.total).toBe(800);
    for (const share of shares) expect(merged.quantile(share)).toBe(both.quantile(share));
  }
});
