import type { Logger } from '../../../core/logger.ts';
import type { OutboxCarrier } from '../../../data/queue/outbox-carrier.ts';

export interface OutboxTransferOptions {
  carrier: OutboxCarrier;
  shard: number;
  logger: Logger;
}

/** Duty in one shard: carries the entries of its outbox to other shards. */
export class OutboxTransfer {
  readonly #options: OutboxTransferOptions;

  constructor(options: OutboxTransferOptions) {
    this.#options = options;
  }

  /** Entries that cannot be sent now are sent after the next check of the shard. */
  begin(): void {
    const { carrier, shard, logger } = this.#options;
    carrier.carry(shard).catch((error: unknown) => logger.debug({ err: error, shard }, 'outbox entries could not be transferred'));
  }
}
