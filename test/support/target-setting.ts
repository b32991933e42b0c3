import type { TargetSetting } from '../../src/data/queue/delivery-queue.ts';

/** The setting of a target without limits, with the overrides of a test. */
export function targetSetting(overrides: Partial<TargetSetting> = {}): TargetSetting {
  return {
    revision: '1',
    paused: false,
    pausedFor: null,
    movesOn: 'nobody',
    throttle: { mode: 'off', rateLimit: null, rateUnit: null, maxConcurrency: null, queueLimit: null },
    sharedLimiter: null,
    priority: 0,
    circuit: { failureThreshold: 1000, cooldownSeconds: 60, probeSuccessThreshold: 2 },
    failover: { destinations: [], afterAttempts: null },
    batch: null,
    inOrder: false,
    hasAlerts: false,
    hasOwnEvents: false,
    ...overrides,
  };
}
