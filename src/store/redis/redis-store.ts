import type { Clock } from '../../core/clock.ts';
import type { Keyring } from '../../core/sealing.ts';
import type { RedisClient } from '../../redis/connection.ts';
import type { ReplicatedWrites } from '../../redis/replicated-writes.ts';
import { ObjectStore } from '../objects/object-store.ts';
import { RedisBackend } from './redis-backend.ts';

export interface RedisStoreOptions {
  /** For commands and scripts; connected. */
  redis: RedisClient;
  /** Makes a connection for blocking reads of `blockMs`; the store connects and closes it. */
  openBlocking: () => RedisClient;
  /** For changes that must reach a replica of Redis before they return; absent: none is waited for. */
  writes?: ReplicatedWrites;
  /** Seals the values of Secrets. */
  keyring: Keyring;
  clock: Clock;
  /** Before every key; default `posthorn:`. */
  prefix?: string;
  /** How many changes a watch can look back; default 10,000. */
  logLength?: number;
  /** Longest blocking read in milliseconds; default 10 s. */
  blockMs?: number;
}

export const defaultBlockMs = 10_000;

/** Resources in Redis, for the standalone role: what the Kubernetes API server does, without one. */
export class RedisStore extends ObjectStore {
  readonly #backend: RedisBackend;

  constructor({ clock, prefix = 'posthorn:', logLength = 10_000, blockMs = defaultBlockMs, ...connections }: RedisStoreOptions) {
    const backend = new RedisBackend({ ...connections, prefix, logLength, blockMs });
    super(backend, clock);
    this.#backend = backend;
  }

  /** Ends every watch; the connection for commands is its owner's to close. */
  close(): void {
    this.#backend.close();
  }
}
