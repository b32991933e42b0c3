import { z } from 'zod';
import type { Clock } from '../core/clock.ts';
import { isPosthornError, PosthornError } from '../core/errors.ts';
import { type ElectionTimes, electionTimes, type LeaderLock } from './elector.ts';

/** coordination.k8s.io/v1 Lease, as far as an election reads and writes it. */
const leaseSchema = z.looseObject({
  apiVersion: z.literal('coordination.k8s.io/v1'),
  kind: z.literal('Lease'),
  metadata: z.looseObject({ name: z.string(), namespace: z.string(), resourceVersion: z.string().optional() }),
  spec: z
    .looseObject({
      holderIdentity: z.string().nullish(),
      leaseDurationSeconds: z.int().nullish(),
      acquireTime: z.string().nullish(),
      renewTime: z.string().nullish(),
      leaseTransitions: z.int().nullish(),
    })
    .default({}),
});
export type Lease = z.output<typeof leaseSchema>;

/** The requests that an election makes; errors as the store port has them. Each ends within `renewDeadlineMs / 2`. */
export interface LeaseApi {
  /** Throws RESOURCE_NOT_FOUND. */
  get(namespace: string, name: string): Promise<unknown>;
  /** Throws ALREADY_EXISTS. */
  create(lease: Lease): Promise<unknown>;
  /** Full update guarded by `metadata.resourceVersion`; throws CONFLICT. */
  update(lease: Lease): Promise<unknown>;
}

/**
 * A leader lock in a Lease, as client-go's leaderelection keeps it: the expiry of another holder's lease is computed from
 * when this process saw it change, never from the times in it.
 */
export class LeaseLock implements LeaderLock {
  readonly #api: LeaseApi;
  readonly #name: { namespace: string; name: string };
  readonly #identity: string;
  readonly #clock: Clock;
  readonly #times: ElectionTimes;
  #observed: { lease: Lease; atMs: number } | null = null;

  constructor(api: LeaseApi, options: { namespace: string; name: string; identity: string; clock: Clock; times?: ElectionTimes }) {
    this.#api = api;
    this.#name = { namespace: options.namespace, name: options.name };
    this.#identity = options.identity;
    this.#clock = options.clock;
    this.#times = options.times ?? electionTimes;
  }

  async hold(): Promise<boolean> {
    // As long as nobody else writes it, the lease seen last can be updated without reading it again.
    if (this.#observed !== null && this.#isMine(this.#observed.lease)) {
      if (await this.#write(this.#held(this.#observed.lease))) return true;
    }
    const lease = await this.#read();
    if (lease === null) return await this.#create();
    this.#observe(lease);
    if (!this.#isMine(lease) && this.#isHeldByAnother()) return false;
    return await this.#write(this.#held(lease));
  }

  async release(): Promise<void> {
    const lease = await this.#read();
    if (lease === null || !this.#isMine(lease)) return;
    const now = microTime(this.#clock.now());
    await this.#write({ ...lease, spec: { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: now, acquireTime: now } });
    this.#observed = null;
  }

  async #read(): Promise<Lease | null> {
    try {
      return leaseSchema.parse(await this.#api.get(this.#name.namespace, this.#name.name));
    } catch (error) {
      if (isPosthornError(error, 'RESOURCE_NOT_FOUND')) return null;
      throw error;
    }
  }

  async #create(): Promise<boolean> {
    const now = microTime(this.#clock.now());
    try {
      const made = await this.#api.create({
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: this.#name,
        spec: {
          holderIdentity: this.#identity,
          leaseDurationSeconds: this.#durationSeconds,
          acquireTime: now,
          renewTime: now,
          leaseTransitions: 0,
        },
      });
      this.#observe(leaseSchema.parse(made));
      return true;
    } catch (error) {
      if (isPosthornError(error, 'ALREADY_EXISTS', 'CONFLICT')) return false;
      throw error;
    }
  }

  /** False when somebody else wrote the lease meanwhile. */
  async #write(lease: Lease): Promise<boolean> {
    try {
      this.#observe(leaseSchema.parse(await this.#api.update(lease)));
      return true;
    } catch (error) {
      if (isPosthornError(error, 'CONFLICT', 'RESOURCE_NOT_FOUND')) return false;
      throw error;
    }
  }

  #held(lease: Lease): Lease {
    const now = microTime(this.#clock.now());
    const taken = !this.#isMine(lease);
    return {
      ...lease,
      spec: {
        ...lease.spec,
        holderIdentity: this.#identity,
        leaseDurationSeconds: this.#durationSeconds,
        renewTime: now,
        acquireTime: taken ? now : lease.spec.acquireTime,
        leaseTransitions: (lease.spec.leaseTransitions ?? 0) + (taken ? 1 : 0),
      },
    };
  }

  #observe(lease: Lease): void {
    const changed = this.#observed === null || JSON.stringify(this.#observed.lease.spec) !== JSON.stringify(lease.spec);
    this.#observed = { lease, atMs: changed || this.#observed === null ? this.#clock.now() : this.#observed.atMs };
  }

  #isMine(lease: Lease): boolean {
    return lease.spec.holderIdentity === this.#identity;
  }

  #isHeldByAnother(): boolean {
    if (this.#observed === null) return false;
    const { holderIdentity, leaseDurationSeconds } = this.#observed.lease.spec;
    if (holderIdentity === undefined || holderIdentity === null || holderIdentity === '') return false;
    const durationMs = (leaseDurationSeconds ?? this.#durationSeconds) * 1000;
    return this.#clock.now() < this.#observed.atMs + durationMs;
  }

  get #durationSeconds(): number {
    const seconds = this.#times.leaseDurationMs / 1000;
    if (!Number.isInteger(seconds) || seconds < 1) throw new PosthornError('INTERNAL', 'a lease lasts whole seconds');
    return seconds;
  }
}

/** metav1.MicroTime, which the API server takes with exactly six digits. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
