import { shardOf } from '../core/shard-of.ts';
import type { FencedPublisher } from './fenced-publisher.ts';

/** The shard of the targets of each destination: that of its published record, else where its id hashes to. */
export class ShardDirectory {
  readonly #publisher: Pick<FencedPublisher, 'get'>;
  readonly #shards: number;
  readonly #known = new Map<string, number>();

  /** `shards`: how many there are for new destinations. */
  constructor(publisher: Pick<FencedPublisher, 'get'>, shards: number) {
    this.#publisher = publisher;
    this.#shards = shards;
  }

  async of(destinationId: string): Promise<number> {
    // The number of shards only grows.
    if (this.#shards === 1) return 0;
    const known = this.#known.get(destinationId);
    if (known !== undefined) return known;
    const published = await this.#publisher.get('destination', destinationId);
    const shard = this.#known.get(destinationId) ?? published?.shard ?? shardOf(destinationId, this.#shards);
    this.#known.set(destinationId, shard);
    return shard;
  }

  /** The destination is gone: a later one with its id is assigned again. */
  forget(destinationId: string): void {
    this.#known.delete(destinationId);
  }
}
