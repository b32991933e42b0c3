import type { ThrottleRecord } from '../../core/records.ts';

const unitSeconds = { second: 1, minute: 60, hour: 3600 } as const;

/**
 * A throttle as the dequeue script takes it: GCRA with the emission interval in µs and one second's worth of burst, at least
 * 1, and 1 where it is strict; the largest concurrency, and how many messages may be queued. Null: no such limit.
 */
export function limiterSetting(throttle: ThrottleRecord): {
  emissionUs: number | null;
  burst: number | null;
  concurrency: number | null;
  queueLimit: number | null;
} {
  const { mode, rateLimit, rateUnit, maxConcurrency } = throttle;
  const queueLimit = mode === 'off' ? null : throttle.queueLimit;
  if (mode === 'rate' && rateLimit !== null && rateUnit !== null) {
    const seconds = unitSeconds[rateUnit];
    return {
      emissionUs: Math.ceil((seconds * 1_000_000) / rateLimit),
      burst: throttle.strict === true ? 1 : Math.max(1, Math.floor(rateLimit / seconds)),
      concurrency: null,
      queueLimit,
    };
  }
  return { emissionUs: null, burst: null, concurrency: mode === 'concurrency' ? maxConcurrency : null, queueLimit };
}
