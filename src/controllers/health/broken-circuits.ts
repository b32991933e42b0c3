import { type CircuitState, worstState } from '../../core/circuit.ts';
import type { CircuitTransition, CircuitView } from '../../data/queue/circuits.ts';

/** Between which two a circuit is: a route or application, and a destination, endpoint or channel. */
export interface CircuitTarget {
  routeId: string;
  destinationId: string;
}

interface Broken extends CircuitTarget {
  state: CircuitState;
  sinceMs: number;
}

export interface Health {
  state: CircuitState;
  /** When the worst circuit got into its state; null when all are closed. */
  sinceMs: number | null;
  /** How many are in that state. */
  count: number;
  /** The one of them that has been in it for the longest time; null when all are closed. */
  longest: CircuitTarget | null;
}

/** The circuits that are not closed, by the id of their route and of their destination. */
export class BrokenCircuits {
  #byId = new Map<string, Map<string, Broken>>();
  readonly #isGone: (id: string) => boolean;

  /** `isGone`: whether there is no such object any more; Redis keeps its circuits for as long as it has messages of it. */
  constructor(isGone: (id: string) => boolean) {
    this.#isGone = isGone;
  }

  /** Replaces all circuits; returns the ids whose circuits may have changed. */
  replace(circuits: readonly CircuitView[]): Set<string> {
    const changed = new Set(this.#byId.keys());
    this.#byId = new Map();
    for (const { routeId, destinationId, state, sinceMs } of circuits) {
      for (const id of this.#set({ routeId, destinationId, state, sinceMs: sinceMs ?? 0 })) changed.add(id);
    }
    return changed;
  }

  /** Applies one transition; returns the ids that it concerns. */
  apply({ routeId, destinationId, state, atMs }: CircuitTransition): string[] {
    return this.#set({ routeId, destinationId, state, sinceMs: atMs });
  }

  /** Removes the circuits from or to `id`. Returns the ids of both ends of each. */
  forget(id: string): string[] {
    return [...(this.#byId.get(id)?.values() ?? [])].flatMap((circuit) => this.#set({ ...circuit, state: 'closed' }));
  }

  /** Returns the health of a route or a destination: the worst of its circuits. */
  of(id: string): Health {
    const circuits = [...(this.#byId.get(id)?.values() ?? [])];
    const state = worstState(circuits.map((circuit) => circuit.state));
    const worst = circuits.filter((circuit) => circuit.state === state).sort((one, other) => one.sinceMs - other.sinceMs);
    const longest = worst[0] ?? null;
    return { state, sinceMs: longest?.sinceMs ?? null, count: worst.length, longest };
  }

  /** How many are in each state. */
  counts(): Record<'open' | 'half_open', number> {
    // Each is there twice: under its route and under its destination.
    const states = [...this.#byId].flatMap(([id, circuits]) =>
      [...circuits.values()].flatMap(({ routeId, state }) => (routeId === id ? [state] : [])),
    );
    const open = states.filter((state) => state === 'open').length;
    return { open, half_open: states.length - open };
  }

  #set(circuit: Broken): string[] {
    const { routeId, destinationId } = circuit;
    const ids = [routeId, destinationId];
    const isGone = ids.some((id) => this.#isGone(id));
    for (const id of ids) {
      const circuits = this.#byId.get(id) ?? new Map<string, Broken>();
      if (isGone || circuit.state === 'closed') circuits.delete(`${routeId} ${destinationId}`);
      else circuits.set(`${routeId} ${destinationId}`, circuit);
      if (circuits.size === 0) this.#byId.delete(id);
      else this.#byId.set(id, circuits);
    }
    return ids;
  }
}
