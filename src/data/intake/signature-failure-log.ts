import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { SignatureFailure } from '../../core/providers/signature-failure.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, Script } from '../../redis/script.ts';
import {
  describeFailure,
  maxFailingSources,
  maxSignatureFailures,
  type SignatureFailureEntry,
  signatureFailureKeys,
  signatureFailuresKeptMs,
} from './signature-failures.ts';

export interface FailedRequest {
  isRefused: boolean;
  address: string;
  /** As it was sent; undefined: none. */
  userAgent: string | undefined;
}

interface SignatureFailureLogOptions {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  logger: Logger;
}

/** Failures of a source since the last write. */
interface Pending {
  org: string;
  requests: number;
  firstAtMs: number;
  lastAtMs: number;
  /** By what they have in common. */
  entries: Map<string, SignatureFailureEntry>;
}

const script = new Script(new URL('./signature-failures.lua', import.meta.url));
const writeEveryMs = 1000;
/** Most entries of a source between two writes; further requests are only counted. */
const maxEntriesOfSource = 5;
/** Between two writes; failures of other sources are not kept until then. */
const maxSources = 500;
const maxSourcesOfOrganization = 50;
const maxUserAgentLength = 120;
/** Parts of a user agent that may be credentials. */
const longWord = /[A-Za-z0-9+/=_-]{32,}/g;
const unprintable = /[^\x20-\x7e]/g;

/**
 * Records why the signatures of requests to sources failed. `note` does not wait: the failures of a second are written at its end, with one call for each
 * source, one call at a time. They are dropped if Redis does not take them. A flood of requests without credentials costs Redis one call a second for each
 * source that it reaches, in each process.
 */
export class SignatureFailureLog {
  readonly #options: SignatureFailureLogOptions;
  #pending = new Map<string, Pending>();
  /** How many sources of an organization are pending. */
  #sources = new Map<string, number>();
  #cancelTimer: (() => void) | null = null;
  #writing: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: SignatureFailureLogOptions) {
    this.#options = options;
  }

  /** Never fails. */
  note({ org, id }: { org: string; id: string }, failure: SignatureFailure, { isRefused, address, userAgent }: FailedRequest): void {
    const nowMs = this.#options.clock.now();
    const pending = this.#pending.get(id) ?? this.#begin(org, id, nowMs);
    if (pending === null) return;
    pending.requests += 1;
    pending.lastAtMs = nowMs;
    const entry = {
      ...failure,
      isRefused,
      address,
      userAgent: userAgent === undefined ? null : shownUserAgent(userAgent),
      requests: 1,
      firstAtMs: nowMs,
      lastAtMs: nowMs,
    };
    const description = describeFailure(entry);
    const before = pending.entries.get(description);
    if (before === undefined && pending.entries.size >= maxEntriesOfSource) return;
    // The newest is the last one.
    pending.entries.delete(description);
    pending.entries.set(
      description,
      before === undefined ? entry : { ...entry, requests: before.requests + 1, firstAtMs: before.firstAtMs },
    );
  }

  /** Writes what is pending; later failures are dropped. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    await this.#writing;
    await this.#write();
  }

  #begin(org: string, id: string, nowMs: number): Pending | null {
    const sources = this.#sources.get(org) ?? 0;
    if (this.#isClosed || sources >= maxSourcesOfOrganization || this.#pending.size >= maxSources) return null;
    const pending: Pending = { org, requests: 0, firstAtMs: nowMs, lastAtMs: nowMs, entries: new Map() };
    this.#pending.set(id, pending);
    this.#sources.set(org, sources + 1);
    if (this.#writing === null) this.#writeSoon();
    return pending;
  }

  #writeSoon(): void {
    this.#cancelTimer ??= this.#options.clock.after(writeEveryMs, () => {
      this.#cancelTimer = null;
      this.#writing = this.#write().finally(() => {
        this.#writing = null;
        if (this.#pending.size > 0 && !this.#isClosed) this.#writeSoon();
      });
    });
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    const { redis, prefix, logger } = this.#options;
    const written = this.#pending;
    this.#pending = new Map();
    this.#sources = new Map();
    try {
      for (const [id, { org, requests, firstAtMs, lastAtMs, entries }] of written) {
        const keys = signatureFailureKeys(prefix, org);
        const bounds = { keptMs: signatureFailuresKeptMs, maxEntries: maxSignatureFailures, maxSources: maxFailingSources };
        const described = [...entries].map(([description, entry]) => [
          ...[entry.firstAtMs, entry.lastAtMs, entry.requests, entry.secondsBehind ?? '-'].map(String),
          ...[entry.userAgent === null ? '-' : encodeURIComponent(entry.userAgent), description],
        ]);
        const failed = { source: id, ...bounds, requests, firstMs: firstAtMs, lastMs: lastAtMs, entries: described };
        await script.run(redis, [keys.entriesOf(id), keys.sources, keys.totals], [namedArgument(failed)]);
      }
    } catch (error) {
      logger.debug({ err: error, sources: written.size }, 'signature failures of sources were not recorded');
    }
  }
}

/** Its beginning, without what may be a credential; null: there is nothing. */
function shownUserAgent(sent: string): string | null {
  const shown = sent.slice(0, maxUserAgentLength).replaceAll(unprintable, '?').replaceAll(longWord, '…').trim();
  return shown === '' ? null : shown;
}
