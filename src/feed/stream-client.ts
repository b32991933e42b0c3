import type { Clock } from '../core/clock.ts';
import type { StoredRow } from '../data/feed/feed-reader.ts';
import { type FeedRow, ownerOfRows, parseFeedRow } from '../data/feed/feed-row.ts';
import { controlText, rowText } from './event-stream-text.ts';
import type { StreamMetrics } from './metrics.ts';
import type { StreamLimits } from './stream-limits.ts';

/** A client and its topics. */
export interface StreamRequest {
  /** The real organization; it gets the rows of its webhooks, too. */
  organization: string;
  /** In whose name it is open. */
  credential: string;
  /** `Last-Event-ID`; null: from now on. */
  lastEventId: string | null;
  matches(row: FeedRow): boolean;
  /** The row as JSON, and its name. */
  show(row: FeedRow): { type: string; json: string };
  /** Whether the credentials are valid; rejects while unknown. */
  isAllowed(): Promise<boolean>;
  /** Aborts when the client goes. */
  signal: AbortSignal;
}

/** Rows that a client has missed, in pages, each row with the id of the client's next position. */
export type MissedRows = AsyncIterable<readonly { row: StoredRow; id: string }[]>;

export interface StreamClientOptions {
  clock: Clock;
  limits: StreamLimits;
  metrics: StreamMetrics;
  /** Current position of the live rows. */
  position: () => string;
  /** Called once, when nothing more is pushed. */
  onEnd: (client: StreamClient) => void;
}

interface WaitingRow {
  row: FeedRow;
  id: string;
}

/**
 * Output of one client of the live stream: the rows that it has missed, paced, and then those that are pushed, as many as it may have in a second. The
 * text waits in `pieces` until the client reads; no other client waits for it.
 */
export class StreamClient {
  readonly request: StreamRequest;
  readonly #options: StreamClientOptions;
  /** The position of the live rows when the client came. */
  readonly #cameAt: string;
  readonly #broken = new AbortController();
  #pending: string[] = [];
  #pendingBytes = 0;
  /** Rows behind those that were missed; null: the client is live. */
  #waiting: WaitingRow[] | null = null;
  /** Whether there are pages of missed rows before those that wait. */
  #hasPages = false;
  #skipped: { count: number; firstId: string; lastId: string } | null = null;
  #tokens: number;
  #refilledAtMs: number;
  #heartbeatAtMs: number;
  #recheckAtMs: number;
  /** Since when the client has not read what there is; null: it waits for more. */
  #unreadSinceMs: number | null = null;
  #hasEnded = false;
  #wake: () => void = () => undefined;

  constructor(request: StreamRequest, options: StreamClientOptions) {
    this.request = request;
    this.#options = options;
    this.#cameAt = options.position();
    const nowMs = options.clock.now();
    this.#tokens = options.limits.rowsPerSecond;
    this.#refilledAtMs = nowMs;
    this.#heartbeatAtMs = nowMs;
    this.#recheckAtMs = nowMs;
    request.signal.addEventListener('abort', () => this.end(), { once: true });
  }

  /** Aborts when the client is to be cut off. */
  get broken(): AbortSignal {
    return this.#broken.signal;
  }

  /** Takes a live row, and its id. */
  push(row: FeedRow, id: string): void {
    if (this.#hasEnded || !this.#mayShow(row)) return;
    if (this.#waiting === null) this.#offer(row, id);
    else this.#hold(this.#waiting, { row, id });
  }

  /** The hub sends a client the rows of its organization only; that is checked once more here. */
  #mayShow(row: FeedRow): boolean {
    return ownerOfRows(row.org) === this.request.organization && this.request.matches(row);
  }

  #hold(waiting: WaitingRow[], row: WaitingRow): void {
    waiting.push(row);
    if (waiting.length <= this.#options.limits.waitingRows) return;
    for (const each of waiting) this.#skip(each.id);
    // Rows that come faster than they may be sent would keep a client that has nothing else to catch up with from ever being live.
    this.#waiting = this.#hasPages ? [] : null;
  }

  /** Rows may be missing before this position, at which the client is live. */
  reset(reason: 'epoch' | 'trimmed', id: string): void {
    this.#waiting = null;
    this.#addSkipped();
    this.#add(controlText('reset', { reason }, id));
  }

  /** Missed rows are gone; those that wait are behind this position. */
  loseMissed(id: string): void {
    if (this.#waiting !== null) this.#add(controlText('reset', { reason: 'trimmed' }, id));
  }

  /** To be called about once a second. */
  tick(): void {
    const { clock, limits, position } = this.#options;
    const nowMs = clock.now();
    if (this.#unreadSinceMs !== null && nowMs - this.#unreadSinceMs > limits.drainMs) {
      this.#drop();
      return;
    }
    if (this.#waiting === null) this.#addSkipped();
    if (nowMs - this.#heartbeatAtMs >= limits.heartbeatMs) {
      this.#heartbeatAtMs = nowMs;
      this.#add(this.#waiting === null ? `: heartbeat\nid: ${position()}\n\n` : ': heartbeat\n\n');
    }
    if (nowMs - this.#recheckAtMs < limits.recheckMs) return;
    this.#recheckAtMs = nowMs;
    this.request.isAllowed().then(
      (isAllowed) => isAllowed || this.end(controlText('revoked', {})),
      () => undefined,
    );
  }

  /** Ends the answer after this last event. */
  end(last = ''): void {
    if (this.#hasEnded) return;
    if (last !== '') this.#add(last);
    this.#hasEnded = true;
    this.#options.onEnd(this);
    this.#wake();
  }

  /** Cuts the client off, whether or not it reads. */
  breakOff(): void {
    this.end();
    this.#broken.abort();
  }

  /** The text of the answer. `missed`: null where nothing is. */
  async *pieces(missed: MissedRows | null): AsyncGenerator<string> {
    try {
      yield* this.#sent(`retry: ${this.#options.limits.retryMs}\n${missed === null ? `id: ${this.#cameAt}\n` : ''}\n`);
      if (missed !== null) {
        yield* this.#missed(missed);
        yield* this.#held();
      }
      for (;;) {
        const text = this.#take();
        if (text !== '') yield* this.#sent(text);
        else if (this.#hasEnded) return;
        else await this.#woken();
      }
    } finally {
      this.end();
    }
  }

  /** Live rows wait until `pieces` has sent those that were missed. */
  holdLive(): void {
    this.#waiting = [];
    this.#hasPages = true;
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  async *#sent(text: string): AsyncGenerator<string> {
    this.#unreadSinceMs = this.#options.clock.now();
    yield text;
    this.#unreadSinceMs = null;
  }

  async *#missed(missed: MissedRows): AsyncGenerator<string> {
    for await (const page of missed) {
      if (this.#isCaughtUp) return;
      for (const { row: stored, id } of page) {
        const row = parseFeedRow(stored.shard, stored.id, stored.text);
        if (row === null || !this.#mayShow(row)) continue;
        while (!this.#mayHave()) {
          await this.#pause();
          if (this.#isCaughtUp) return;
        }
        this.#addRow(row, id);
        yield* this.#sent(this.#take());
        if (this.#isCaughtUp) return;
      }
    }
    this.#hasPages = false;
  }

  /** Sends the live rows that were held back during the catch-up. The client is live afterwards. */
  async *#held(): AsyncGenerator<string> {
    while (this.#waiting !== null && this.#waiting.length > 0 && !this.#hasEnded) {
      if (!this.#mayHave()) {
        await this.#pause();
        continue;
      }
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#addSkipped();
      this.#addRow(next.row, next.id);
      yield* this.#sent(this.#take());
    }
    this.#waiting = null;
  }

  /** Nothing that was missed is to be sent any more. */
  get #isCaughtUp(): boolean {
    return this.#hasEnded || this.#waiting === null;
  }

  async #pause(): Promise<void> {
    await this.#options.clock.sleep(1000 / this.#options.limits.rowsPerSecond, this.request.signal);
  }

  #offer(row: FeedRow, id: string): void {
    if (this.#mayHave()) {
      this.#addSkipped();
      this.#addRow(row, id);
    } else this.#skip(id);
  }

  /** Takes one of the rows of this second. */
  #mayHave(): boolean {
    const { clock, limits } = this.#options;
    const nowMs = clock.now();
    const refill = ((nowMs - this.#refilledAtMs) / 1000) * limits.rowsPerSecond;
    this.#tokens = Math.min(limits.rowsPerSecond, this.#tokens + Math.max(0, refill));
    this.#refilledAtMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  #skip(id: string): void {
    this.#options.metrics.skipped.inc();
    this.#skipped ??= { count: 0, firstId: id, lastId: id };
    this.#skipped.count += 1;
    this.#skipped.lastId = id;
  }

  #addSkipped(): void {
    if (this.#skipped === null) return;
    const skipped = this.#skipped;
    this.#skipped = null;
    this.#add(controlText('skipped', skipped, skipped.lastId));
  }

  #addRow(row: FeedRow, id: string): void {
    this.#options.metrics.sent.inc();
    this.#add(rowText(this.request.show(row), id));
  }

  #add(text: string): void {
    if (this.#hasEnded) return;
    this.#pending.push(text);
    this.#pendingBytes += text.length;
    if (this.#pendingBytes > this.#options.limits.pendingBytes) this.#drop();
    else this.#wake();
  }

  #take(): string {
    const text = this.#pending.join('');
    this.#pending = [];
    this.#pendingBytes = 0;
    return text;
  }

  #drop(): void {
    if (this.#broken.signal.aborted) return;
    this.#options.metrics.dropped.inc();
    this.breakOff();
  }
}
