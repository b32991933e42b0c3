import type { RedisClient } from '../../redis/connection.ts';
import { Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { shardKeys } from '../shard/shard-keys.ts';

const noteScript = new Script(new URL('./own-note.lua', import.meta.url));

/** A thing that is said of a webhook endpoint. */
export interface OwnNote {
  shard: number;
  /** Of the target. */
  org: string;
  routeId: string;
  destinationId: string;
  kind: 'disabled' | 'disabling';
  /** Grows with each thing of the kind: one that is not larger than the last is not noted again. */
  number: number;
  reason: string;
}

/** Notes for Posthorn's own events what no step of a message says. */
export class OwnEventNotes {
  readonly #options: { redis: RedisClient; prefix: string };

  constructor(options: { redis: RedisClient; prefix: string }) {
    this.#options = options;
  }

  /** Nothing where the organization has no source for them. Throws UNAVAILABLE. */
  async note({ shard, org, routeId, destinationId, kind, number, reason }: OwnNote): Promise<void> {
    const { redis, prefix } = this.#options;
    const args = [org, routeId, destinationId, kind === 'disabled' ? 'd' : 'w', number, reason];
    await noteScript.run(redis, shardKeys(prefix, shard).declared, args).catch(throwUnavailable);
  }
}
