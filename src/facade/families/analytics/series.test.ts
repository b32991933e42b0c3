import { expect, test } from '@jest/globals';
import { latencyBucket } from '../../../core/latency-histogram.ts';
import { SeriesPoint } from '../../../data/analytics/series-scope.ts';
import { toSeries } from './series.ts';

test('a series whose deliveries only some shards have read shows nothing of them', () => {
  const point = new SeriesPoint();
  Object.assign(point, { events: 3, duplicates: 2, filtered: 1 });
  point.statistics.addRecord([1, 1, 0, 10, latencyBucket(5), 2]);
  point.addSamples(0, { count: 1, sum: 4, oldestAgeMs: 100 });
  const read = { beginMs: 0, endMs: 300_000, stepMs: 300_000, points: [point], total: point, hasDeliveries: false, waiting: null };
  const { events, duplicates, filtered, ...ofDeliveries } = toSeries(read, 'source', 0).total;
  expect({ events, duplicates, filtered }).toEqual({ events: 3, duplicates: 2, filtered: 1 });
  expect([...new Set(Object.values(ofDeliveries))]).toEqual([null]);
});
