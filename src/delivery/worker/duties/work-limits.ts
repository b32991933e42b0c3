/** Time that a duty may take within one look at a shard, in ms. The next look must not be late for it. */
export const longestWorkMs = 1000;
/** Between the steps of a duty others get their turn in Redis, in ms. */
export const pauseBetweenStepsMs = 10;
