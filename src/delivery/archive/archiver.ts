import { withJitter } from '../../core/backoff.ts';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { MessageArchive } from '../../data/history/message-archive.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import type { DeliveryMetrics } from '../metrics.ts';
import { withLookupShare } from '../targets/http/name-lookups.ts';
import { layoutText, readLayout } from '../targets/warehouse/batch-layout.ts';
import { upload } from '../targets/warehouse/upload.ts';
import { uploadRecord } from '../targets/warehouse/warehouse-attempt.ts';
import { archiveContent } from './archive-content.ts';
import { ArchiveSettings } from './archive-settings.ts';
import { type ArchiveTargetSources, archiveTarget } from './archive-target.ts';

const intervalMs = 3000;
/** However little has changed: Redis may have been emptied. */
const settingsIntervalMs = 60_000;
/** Looking for what has finished must not hold up writing it. */
const longestGatherMs = 1000;
/** Batches that are written at the same time; of an organization one. */
const maxWrites = 4;
const retryDelays = { firstMs: 5000, maxMs: 600_000 };

export interface ArchiverOptions extends ArchiveTargetSources {
  archives: readonly MessageArchive[];
  registry: RegistryReader;
  worker: string;
  clock: Clock;
  logger: Logger;
  metrics: DeliveryMetrics;
}

/** Writes what has finished into the archives of the organizations that have one. Costs nothing where there is none. */
export class Archiver {
  readonly #options: ArchiverOptions;
  readonly #settings: ArchiveSettings;
  readonly #stopping = new AbortController();
  readonly #writes = new Map<string, Promise<void>>();
  #loop: Promise<void> = Promise.resolve();
  #filling: Promise<void> | null = null;
  #mustFillAgain = false;
  #isNeeded = false;
  #hasChanged = true;
  #stopListening = (): void => undefined;

  constructor(options: ArchiverOptions) {
    this.#options = options;
    this.#settings = new ArchiveSettings(options);
  }

  start(): void {
    this.#stopListening = this.#options.registry.onChange((key) => {
      if (key === '*' || key === 'archives' || key.startsWith('organization:')) this.#hasChanged = true;
    });
    this.#loop = this.#run();
  }

  /** Aborts what is being written; another worker writes it again, under the same names. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#stopListening();
    await this.#loop;
    await this.#filling;
    await Promise.all(this.#writes.values());
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    let appliedAtMs = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      try {
        if (this.#hasChanged || clock.now() - appliedAtMs >= settingsIntervalMs) {
          this.#hasChanged = false;
          appliedAtMs = clock.now();
          this.#isNeeded = await this.#settings.apply();
        }
        if (this.#isNeeded) {
          for (const archive of this.#options.archives) await this.#gather(archive);
          await this.#fill();
        }
      } catch (error) {
        this.#hasChanged = true;
        this.#onTrouble(error);
      }
      await clock.sleep(withJitter(intervalMs), signal);
    }
  }

  async #gather(archive: MessageArchive): Promise<void> {
    const { clock } = this.#options;
    const endMs = clock.now() + longestGatherMs;
    while ((await archive.gather()) && !this.#stopping.signal.aborted && clock.now() < endMs);
  }

  /** Begins writes until there are enough, or nothing more is to be written now. */
  async #fill(): Promise<void> {
    this.#mustFillAgain = true;
    this.#filling ??= (async () => {
      try {
        while (this.#mustFillAgain) {
          this.#mustFillAgain = false;
          for (const archive of this.#options.archives) await this.#takeFrom(archive);
        }
      } finally {
        this.#filling = null;
      }
    })();
    await this.#filling;
  }

  async #takeFrom(archive: MessageArchive): Promise<void> {
    while (this.#writes.size < maxWrites && !this.#stopping.signal.aborted) {
      const taken = await archive.take([...this.#writes.keys()]);
      if (taken === null) return;
      const write = withLookupShare(taken.org, () => this.#write(archive, taken.org, taken.destinationId))
        .catch((error: unknown) => this.#onTrouble(error))
        .finally(() => {
          this.#writes.delete(taken.org);
          if (!this.#stopping.signal.aborted) this.#fill().catch((error: unknown) => this.#onTrouble(error));
        });
      this.#writes.set(taken.org, write);
    }
  }

  async #write(archive: MessageArchive, org: string, destinationId: string | null): Promise<void> {
    const { worker, clock, metrics } = this.#options;
    const { signal } = this.#stopping;
    const target = await archiveTarget(this.#options, org, destinationId);
    if (typeof target === 'string' || destinationId === null) {
      await this.#onFailure(archive, org, String(target));
      return;
    }
    const batch = await archive.batch(org, worker, { layout: layoutText(target.layout), destinationId });
    if (batch === null) return;
    const { objects, count } = await archiveContent(batch.id, readLayout(batch.layout), archive.messages(org, batch));
    if (objects.length > 0) {
      const startedAtMs = clock.now();
      const result = await upload(target.store, objects, { dispatcher: target.dispatcher(), secrets: target.secrets, clock, signal });
      if (signal.aborted && result.type === 'error') {
        await archive.release(org);
        return;
      }
      const { errorType, errorMessage } = uploadRecord(result, { startedAtMs, endedAtMs: clock.now() });
      if (errorType !== null) {
        await this.#onFailure(archive, org, errorMessage ?? errorType);
        return;
      }
    }
    metrics.archiveUploads.inc({ outcome: 'stored' });
    if (await archive.done(org, batch.id, count)) metrics.archived.inc(count);
  }

  async #onFailure(archive: MessageArchive, org: string, message: string): Promise<void> {
    const { metrics, logger } = this.#options;
    metrics.archiveUploads.inc({ outcome: 'failed' });
    const failures = await archive.failed(org, message, retryDelays);
    if (failures === 1) logger.warn({ organizationId: org, why: message }, 'an archive cannot be written; retrying');
  }

  /** Redis is down, or being published into: leased work is requeued when its lease ends. */
  #onTrouble(error: unknown): void {
    const { logger } = this.#options;
    logger.debug({ reason: error instanceof Error ? error.message : String(error) }, 'an archive could not be checked');
  }
}
