import type { CircuitState } from '../../core/circuit.ts';
import type { Clock } from '../../core/clock.ts';
import type { CircuitView } from '../../data/queue/circuits.ts';
import type { ObjectOf } from '../../resources/kinds.ts';
import type { Condition } from '../../resources/metadata.ts';
import type { ReconcileResult } from '../../runtime/run-controller.ts';
import type { ResourceCache } from '../../store/cache.ts';
import type { Key, ResourceStore } from '../../store/store.ts';
import { type Finding, timestamp } from '../conditions.ts';
import type { EventRecorder } from '../event-recorder.ts';
import { idOf, isLive } from '../held-ids.ts';
import type { BrokenCircuits, CircuitTarget, Health } from './broken-circuits.ts';

/** One write per object in this time. */
const writeIntervalMs = 30_000;
const delivering = 'Delivering';
const noCircuit: Health = { state: 'closed', sinceMs: null, count: 0, longest: null };

export interface HealthReconcilerOptions<K extends HealthKind> {
  cache: ResourceCache<K>;
  circuits: BrokenCircuits;
  store: Pick<ResourceStore, 'applyStatus'>;
  clock: Clock;
  recorder: EventRecorder;
  /** Whether the circuits under the id of the object are its own: it may ask for that of another organization's. */
  ownsCircuits(object: ObjectOf<K>): boolean;
  /** What is known of one circuit of the object; null: nothing now. */
  detail(object: ObjectOf<K>, target: CircuitTarget): Promise<CircuitDetail | null>;
  /** Resolves when it may write: many circuits may change at once. */
  turn(): Promise<void>;
}

/** One circuit, for people. */
export interface CircuitDetail {
  /** Such as `from the route all to the destination shop`. */
  between: string;
  outageBeganAtMs: number | null;
  nextProbeAtMs: number | null;
  lastFailure: CircuitView['lastFailure'];
}

export type HealthKind = 'Route' | 'Destination' | 'WebhookEndpoint';

/** Writes the state of circuits into the status: `circuit` and the condition `Delivering`, both of the manager `posthorn-health`. */
export class HealthReconciler<K extends HealthKind> {
  readonly #options: HealthReconcilerOptions<K>;
  /** The last writes by the uid of the object, the oldest first. */
  readonly #written = new Map<string, { atMs: number; state: CircuitState }>();

  constructor(options: HealthReconcilerOptions<K>) {
    this.#options = options;
  }

  async reconcile(key: Key): Promise<ReconcileResult> {
    const { clock, turn } = this.#options;
    const stale = this.#stale(key);
    if (stale === null) return {};
    const last = this.#lastWrite(stale.object);
    if (last !== null) return { requeueAfterMs: last.atMs + writeIntervalMs - clock.now() };
    await turn();
    const due = this.#stale(key);
    if (due === null) return {};
    this.#forgetOld();
    const { object, health } = due;
    await this.#write(key, object, health);
    this.#written.delete(object.metadata.uid);
    this.#written.set(object.metadata.uid, { atMs: clock.now(), state: health.state });
    return {};
  }

  /** The object and the state of its circuits, if its status differs; null if there is nothing to write. */
  #stale(key: Key): { object: ObjectOf<K>; health: Health } | null {
    const { cache, circuits, ownsCircuits } = this.#options;
    const object = cache.get(key);
    if (object === undefined || !isLive(object)) return null;
    const health = ownsCircuits(object) ? circuits.of(idOf(cache.kind, object)) : noCircuit;
    // The cache may not have the last write yet.
    const state = this.#lastWrite(object)?.state ?? object.status?.circuit?.state ?? 'closed';
    return state === health.state ? null : { object, health };
  }

  /** The write after which the next one has to wait; null: none has to. */
  #lastWrite({ metadata: { uid } }: ObjectOf<K>): { atMs: number; state: CircuitState } | null {
    const written = this.#written.get(uid);
    return written !== undefined && this.#options.clock.now() - written.atMs < writeIntervalMs ? written : null;
  }

  async #write(key: Key, object: ObjectOf<K>, health: Health): Promise<void> {
    const { cache, store, clock, recorder } = this.#options;
    const { generation, uid } = object.metadata;
    const { longest } = health;
    const detail = longest === null ? null : await this.#options.detail(object, longest);
    const { status, reason, message } = findingOf(health, detail);
    const before: readonly Condition[] = object.status?.conditions ?? [];
    const last = before.find(({ type }) => type === delivering);
    const now = timestamp(clock.now());
    const condition: Condition = {
      type: delivering,
      status,
      reason,
      message,
      lastTransitionTime: last?.status === status ? last.lastTransitionTime : now,
      observedGeneration: generation,
    };
    const circuit = { state: health.state, since: health.sinceMs === null ? now : timestamp(health.sinceMs) };
    await store.applyStatus(cache.kind, key, { circuit, conditions: [condition] }, { manager: 'posthorn-health', force: true, ifUid: uid });
    recorder.record({ object, type: health.state === 'open' ? 'Warning' : 'Normal', reason, message });
  }

  /** So that what is gone does not stay in memory. */
  #forgetOld(): void {
    const before = this.#options.clock.now() - writeIntervalMs;
    for (const [uid, { atMs }] of this.#written) {
      if (atMs > before) break;
      this.#written.delete(uid);
    }
  }
}

const reasons: Record<CircuitState, Pick<Finding, 'status' | 'reason'>> = {
  closed: { status: 'True', reason: 'CircuitClosed' },
  half_open: { status: 'Unknown', reason: 'CircuitHalfOpen' },
  open: { status: 'False', reason: 'CircuitOpen' },
};

function findingOf({ state, count, sinceMs }: Health, detail: CircuitDetail | null): Finding {
  if (state === 'closed') return { ...reasons.closed, message: 'deliveries flow' };
  const what = detail === null ? 'a circuit' : `the circuit ${detail.between}`;
  const since = detail?.outageBeganAtMs ?? sinceMs;
  const parts = [
    ...(count > 1 ? [`${count} circuits are ${stateNames[state]}`] : []),
    `${what} is ${stateNames[state]}${since === null ? '' : ` since ${timestamp(since)}`}`,
    ...(detail?.lastFailure == null ? [] : [`the last attempt failed with ${failureText(detail.lastFailure)}`]),
    ...(state === 'open' && detail?.nextProbeAtMs != null ? [`the next probe is due at ${timestamp(detail.nextProbeAtMs)}`] : []),
    state === 'open' ? 'deliveries wait or fail over' : 'probes test the target',
  ];
  return { ...reasons[state], message: parts.join('; ') };
}

const stateNames = { open: 'open', half_open: 'half-open' } as const;

function failureText({ responseStatus, errorType }: NonNullable<CircuitDetail['lastFailure']>): string {
  return responseStatus === null ? (errorType ?? 'an error') : `status ${responseStatus}`;
}
