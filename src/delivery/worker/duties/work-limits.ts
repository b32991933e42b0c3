/** Time that a duty may take within one check of a shard, in ms. The next check must not be late for it. */
export const longestWorkMs = 1000;
/** Pause between the steps of a duty in which Redis serves others, in ms. */
export const pauseBetweenStepsMs = 10;
