import type { Failures } from './failure.ts';
import { objectFailures } from './object-failures.ts';
import { redisFailures } from './redis-failures.ts';
import { releaseFailures } from './release-failures.ts';

const { 'the pool `default` is deleted': noPool, ...ofObjects } = objectFailures;
const {
  'values are refused': refusedValues,
  'values name a Secret that does not exist': absentSecret,
  'an encryption key is lost': lostKey,
  'the clocks of two nodes differ': clocks,
  ...ofControllers
} = releaseFailures;

/** The rows of docs/failures.md in the order in which the suite makes them. It makes those of a group at the same time. */
export const groups: readonly Failures[] = [
  // First, because no other pool has workers yet.
  { 'the pool `default` is deleted': noPool },
  ofObjects,
  { 'values are refused': refusedValues },
  { 'values name a Secret that does not exist': absentSecret },
  ...Object.entries(redisFailures).map(([name, failure]) => ({ [name]: failure })),
  { 'an encryption key is lost': lostKey },
  // Not beside the lost key, which the workers that it starts would lack, too.
  { 'the clocks of two nodes differ': clocks },
  ofControllers,
];
