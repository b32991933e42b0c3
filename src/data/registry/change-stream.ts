import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { type RegistryKeys, registryFields } from './registry-keys.ts';

/** Longest block of one read; at its end the reader checks the store id. */
export const changeStreamBlockMs = 30_000;

const entriesPerRead = 1000;
const headDeadlineMs = 2000;
const backoffFirstMs = 100;
const backoffCeilingMs = 2000;

export interface ChangeStreamOptions {
  /** A connection of its own, made by `blockingConnection` with `blockMs` of at least `changeStreamBlockMs`. */
  blocking: RedisClient;
  keys: Pick<RegistryKeys, 'marker' | 'sequence' | 'changes'>;
  clock: Clock;
  logger: Logger;
  /** A change of these keys has been published. */
  onChange(changeKeys: string[]): void;
  /** Changes may have been missed: a gap in the sequence, another store, a new connection. */
  onFlush(): void;
}

const { changeEntry } = registryFields;

interface Change {
  sequence: number;
  marker: string;
  changeKeys: string[];
}

/**
 * Follows a change stream, the registry's or that of webhook objects, with one blocking read. It never gives up: after an error it tries again with
 * backoff, and every new connection begins with a flush.
 */
export class ChangeStream {
  readonly #options: ChangeStreamOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;
  #connectionLost = false;
  #sequence = 0;
  #marker = '';

  constructor(options: ChangeStreamOptions) {
    this.#options = options;
    options.blocking.on('close', this.#onClose);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends the reading and the connection. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#options.blocking.off('close', this.#onClose);
    this.#options.blocking.disconnect();
    await this.#running;
  }

  readonly #onClose = (): void => {
    this.#connectionLost = true;
  };

  async #run(): Promise<void> {
    const { clock, logger } = this.#options;
    let failures = 0;
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#synchronize();
        if (failures > 0) logger.info('the change stream is readable again');
        failures = 0;
        await this.#follow();
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        if (failures === 0) logger.warn({ err: error }, 'the change stream cannot be read; retrying');
        const delayMs = Math.min(backoffCeilingMs, backoffFirstMs * 2 ** Math.min(failures, 10));
        failures += 1;
        await clock.sleep(delayMs * (0.8 + Math.random() * 0.4), this.#stopping.signal);
      }
    }
  }

  /** Takes the end of the stream as the position to read from; everything read before may be out of date. */
  async #synchronize(): Promise<void> {
    const { blocking, onFlush } = this.#options;
    if (blocking.status === 'wait' || blocking.status === 'end') await blocking.connect();
    this.#connectionLost = false;
    const [marker, sequence] = await this.#readHead();
    this.#marker = marker;
    this.#sequence = sequence;
    onFlush();
  }

  /** Reads until the position in the stream is lost. */
  async #follow(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const changes = await this.#read();
      if (this.#connectionLost) return;
      if (changes.length === 0) {
        const [marker, sequence] = await this.#readHead();
        if (marker !== this.#marker || sequence !== this.#sequence) return;
      }
      for (const change of changes) this.#apply(change);
    }
  }

  #apply({ sequence, marker, changeKeys }: Change): void {
    const isNext = sequence === this.#sequence + 1 && marker === this.#marker;
    this.#sequence = sequence;
    this.#marker = marker;
    if (isNext) this.#options.onChange(changeKeys);
    else this.#options.onFlush();
  }

  async #readHead(): Promise<[marker: string, sequence: number]> {
    const { blocking, keys, clock } = this.#options;
    // A connection whose other end is gone without a word is only noticed by its silence.
    const cancel = clock.after(headDeadlineMs, () => blocking.disconnect(true));
    try {
      const [marker, sequence] = await blocking.mget(keys.marker, keys.sequence);
      return [marker ?? '', Number(sequence ?? 0)];
    } finally {
      cancel();
    }
  }

  async #read(): Promise<Change[]> {
    const { blocking, keys } = this.#options;
    const reply = await blocking.xread(
      'COUNT',
      entriesPerRead,
      'BLOCK',
      changeStreamBlockMs,
      'STREAMS',
      keys.changes,
      `${this.#sequence}-0`,
    );
    const entries = reply?.[0]?.[1] ?? [];
    return entries.map(([id, fields]) => parseChange(id, fields));
  }
}

function parseChange(id: string, fields: string[]): Change {
  const change: Change = { sequence: Number(id.slice(0, id.indexOf('-'))), marker: '', changeKeys: [] };
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const value = fields[i + 1] ?? '';
    if (fields[i] === changeEntry.marker) change.marker = value;
    else if (fields[i] === changeEntry.key) change.changeKeys.push(value);
  }
  return change;
}
