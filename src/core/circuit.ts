/** States of a circuit: deliveries flow, wait or fail over, or probe. */
export type CircuitState = 'closed' | 'open' | 'half_open';

export interface CircuitSetting {
  /** Consecutive failed attempts that open the circuit. */
  failureThreshold: number;
  cooldownSeconds: number;
  /** Successful probes that close it; also how many may be under way at a time. */
  probeSuccessThreshold: number;
}

export interface Circuit {
  state: CircuitState;
  /** Grows with every transition; an attempt carries the one under which it began. */
  generation: number;
  consecutiveFailures: number;
  probeSuccesses: number;
  /** Null unless open. */
  cooldownEndsAtMs: number | null;
}

export type CircuitEvent =
  | { type: 'succeeded' | 'failed'; generation: number; atMs: number }
  /** Time has passed. */
  | { type: 'tick'; atMs: number }
  | { type: 'reset' };

export const newCircuit: Circuit = { state: 'closed', generation: 0, consecutiveFailures: 0, probeSuccesses: 0, cooldownEndsAtMs: null };

/**
 * The state machine of a circuit: closed → open after consecutive failures, open → half_open after the cooldown, then
 * closed after enough successful probes or open again after one failure. Results of an older generation move nothing. What
 * moves the circuits in Redis is `data/queue/includes/circuit.lua`; this is its specification, and both are held together by a test.
 */
export function circuitAfter(circuit: Circuit, event: CircuitEvent, setting: CircuitSetting): Circuit {
  switch (event.type) {
    case 'reset':
      return begun(circuit, 'closed');
    case 'tick':
      if (circuit.state !== 'open' || event.atMs < (circuit.cooldownEndsAtMs ?? 0)) return circuit;
      return { ...begun(circuit, 'half_open'), consecutiveFailures: circuit.consecutiveFailures };
    case 'succeeded':
      if (event.generation !== circuit.generation || circuit.state === 'open') return circuit;
      if (circuit.state === 'closed') return { ...circuit, consecutiveFailures: 0 };
      if (circuit.probeSuccesses + 1 >= setting.probeSuccessThreshold) return begun(circuit, 'closed');
      return { ...circuit, probeSuccesses: circuit.probeSuccesses + 1 };
    case 'failed': {
      if (event.generation !== circuit.generation || circuit.state === 'open') return circuit;
      const consecutiveFailures = circuit.consecutiveFailures + 1;
      if (circuit.state === 'closed' && consecutiveFailures < setting.failureThreshold) return { ...circuit, consecutiveFailures };
      const cooldownEndsAtMs = event.atMs + setting.cooldownSeconds * 1000;
      return { ...begun(circuit, 'open'), consecutiveFailures, cooldownEndsAtMs };
    }
    default:
      return event satisfies never;
  }
}

/** The one that hurts most: open before half_open before closed. */
export function worstState(states: Iterable<CircuitState>): CircuitState {
  let worst: CircuitState = 'closed';
  for (const state of states) {
    if (state === 'open') return state;
    if (state === 'half_open') worst = state;
  }
  return worst;
}

function begun({ generation }: Circuit, state: CircuitState): Circuit {
  return { ...newCircuit, state, generation: generation + 1 };
}
