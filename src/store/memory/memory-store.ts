import type { Clock } from '../../core/clock.ts';
import { ObjectStore } from '../objects/object-store.ts';
import { MemoryBackend } from './memory-backend.ts';

/** Resources in this process alone, for tests: the semantics of the redis store without a server. */
export class MemoryStore extends ObjectStore {
  /** `logLength`: how many changes a watch can look back. */
  constructor(clock: Clock, options: { logLength?: number } = {}) {
    super(new MemoryBackend(options.logLength ?? 10_000), clock);
  }
}
