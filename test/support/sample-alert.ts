import type { Alert } from '../../src/core/alert.ts';

/** An alert about a failure, with the overrides of a test. */
export function sampleAlert(overrides: Partial<Alert> = {}): Alert {
  return {
    type: 'delivery.failed',
    organizationId: 'org_a',
    route: { id: 'rte_a', name: 'Orders' },
    destination: { id: 'dst_a', name: 'Shop' },
    circuitState: 'half_open',
    event: { id: 'evt_a', receivedAt: '2026-01-31T12:00:00.000Z' },
    attempts: 11,
    responseStatus: 503,
    errorMessage: 'the receiver answered 503',
    count: 3,
    firstAt: '2026-01-31T12:00:00.000Z',
    lastAt: '2026-01-31T12:04:00.000Z',
    ...overrides,
  };
}
