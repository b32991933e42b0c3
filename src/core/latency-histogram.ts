/**
 * A histogram of durations whose buckets grow by a constant factor (DDSketch): every quantile is within `relativeError` of the
 * exact one, whatever the durations are, and two histograms add up to the one of both. The bucket `i` holds what is longer than
 * γ^(i-1) and at most γ^i ms; bucket 0 everything up to 1 ms. `includes/statistics.lua` counts into the same buckets.
 */
const relativeError = 0.04;
const gamma = (1 + relativeError) / (1 - relativeError);
const logGamma = Math.log(gamma);
/** Longer ones than this bucket holds (6 minutes) count as that long; attempts end after one. */
const lastBucket = 160;

/** The bucket of a duration in milliseconds. */
export function latencyBucket(ms: number): number {
  return ms <= 1 ? 0 : Math.min(lastBucket, Math.ceil(Math.log(ms) / logGamma));
}

export class LatencyHistogram {
  readonly #counts = new Float64Array(lastBucket + 1);
  #total = 0;

  get total(): number {
    return this.#total;
  }

  /** Counts `count` durations of a bucket. */
  add(bucket: number, count = 1): void {
    const i = Math.min(lastBucket, Math.max(0, bucket));
    this.#counts[i] = (this.#counts[i] ?? 0) + count;
    this.#total += count;
  }

  merge(other: LatencyHistogram): void {
    for (let bucket = 0; bucket <= lastBucket; bucket++) {
      const count = other.#counts[bucket] ?? 0;
      if (count > 0) this.add(bucket, count);
    }
  }

  /** The duration in ms that a share (0 to 1) of all does not exceed (nearest rank); null without durations. */
  quantile(share: number): number | null {
    if (this.#total === 0) return null;
    const rank = Math.max(1, Math.ceil(share * this.#total));
    let seen = 0;
    for (let bucket = 0; bucket <= lastBucket; bucket++) {
      seen += this.#counts[bucket] ?? 0;
      if (seen >= rank) return middleOf(bucket);
    }
    return middleOf(lastBucket);
  }
}

/** A value within `relativeError` of every duration of the bucket. */
function middleOf(bucket: number): number {
  return bucket === 0 ? 1 : (2 * gamma ** bucket) / (gamma + 1);
}
