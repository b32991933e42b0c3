import type { Clock } from '../core/clock.ts';
import { PosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { loopTurns } from '../core/loop-turns.ts';
import { OpenShares } from '../core/open-shares.ts';
import { Semaphore } from '../core/semaphore.ts';
import { compareRows, type FeedPosition, parsePosition, positionPart, positionText } from '../data/feed/feed-position.ts';
import { type FeedReader, rowsPerRead, type StoredRow } from '../data/feed/feed-reader.ts';
import { organizationOfRow, ownerOfRows, parseFeedRow } from '../data/feed/feed-row.ts';
import { controlText } from './event-stream-text.ts';
import type { StreamMetrics } from './metrics.ts';
import { type MissedRows, StreamClient, type StreamRequest } from './stream-client.ts';
import { type StreamLimits, streamLimits } from './stream-limits.ts';

const tickMs = 1000;
/** Interest lasts for a minute (`interestMs`). */
const renewEveryMs = 15_000;
const backoffMs = { first: 100, max: 2000 };
/** How long a client that has seen more than this process waits for it. */
const catchUpMs = 2000;
const catchUpStepMs = 20;
/** Pages of missed rows that a process reads at a time; further clients wait. */
const maxPages = 4;
/** Time that clients have for the last event when the process ends. */
const partingMs = 2000;

export interface StreamHubOptions {
  reader: FeedReader;
  clock: Clock;
  logger: Logger;
  metrics: StreamMetrics;
  limits?: Partial<StreamLimits>;
}

/** An answer that is sent as it is made; `broken` aborts when it is to be cut off. */
export interface OpenStream {
  pieces: AsyncIterable<string>;
  broken: AbortSignal;
}

/**
 * The live streams of a process. While there is one, the feeds of all shards are read by one loop, and each row goes to the clients of its organization.
 * Nothing is read while there is none.
 */
export class StreamHub {
  readonly #options: StreamHubOptions;
  readonly #limits: StreamLimits;
  readonly #shares: OpenShares;
  readonly #pages = new Semaphore(maxPages);
  readonly #clients = new Map<string, Set<StreamClient>>();
  #epoch = '';
  #rows: string[] = [];
  #parts: string[] = [];
  /** Resolves when the rows above are those of a feed that is being read; null: nothing is read. */
  #started: Promise<void> | null = null;
  readonly #closing = new AbortController();

  constructor(options: StreamHubOptions) {
    this.#options = options;
    this.#limits = { ...streamLimits, ...options.limits };
    this.#shares = new OpenShares({ all: this.#limits.perProcess, ofOwner: this.#limits.perOrganization });
  }

  /** RATE_LIMITED when there are too many, UNAVAILABLE when Redis does not answer, the process ends or the client has gone. */
  async open(request: StreamRequest): Promise<OpenStream> {
    this.#enter(request);
    const left = AbortSignal.any([request.signal, this.#closing.signal]);
    try {
      await this.#reading();
      const since = request.lastEventId === null ? null : parsePosition(request.lastEventId);
      if (since !== null) await this.#catchUp(since, left);
      if (left.aborted) throw ending();
    } catch (error) {
      this.#leave(request);
      throw error;
    }
    return this.#join(request);
  }

  /** Makes all clients reconnect, and ends their responses. */
  close(): void {
    this.#closing.abort();
    const clients = this.#all();
    if (clients.length > 0) this.#cutAfterParting(clients);
    for (const client of clients) client.end(controlText('reconnect', { reason: 'shutdown', retryMs: this.#limits.retryMs }));
    this.#options.reader.close();
  }

  #cutAfterParting(clients: readonly StreamClient[]): void {
    this.#options.clock.after(partingMs, () => {
      for (const client of clients) client.breakOff();
    });
  }

  #enter({ organization, credential }: StreamRequest): void {
    if (this.#closing.signal.aborted) throw ending();
    if (!this.#shares.take(organization, 1, credential)) {
      const whose = this.#shares.open >= this.#limits.perProcess ? 'of this process' : 'of the organization';
      throw new PosthornError('RATE_LIMITED', `Too many live streams ${whose} are open.`, { retryAfterSeconds: 10 });
    }
    this.#options.metrics.open.set(this.#shares.open);
  }

  #leave({ organization, credential }: StreamRequest): void {
    this.#shares.giveBack(organization, 1, credential);
    this.#options.metrics.open.set(this.#shares.open);
    // The feed is written for a while longer, for a client that comes back.
    if (this.#shares.open === 0 && !this.#closing.signal.aborted) this.#options.reader.watch().catch(() => undefined);
  }

  #join(request: StreamRequest): OpenStream {
    const { clock, metrics } = this.#options;
    const { organization } = request;
    const client = new StreamClient(request, {
      clock,
      metrics,
      limits: this.#limits,
      position: () => this.#position(),
      onEnd: (ended) => {
        const others = this.#clients.get(organization);
        others?.delete(ended);
        if (others?.size === 0) this.#clients.delete(organization);
        this.#leave(request);
      },
    });
    const missed = this.#missedBy(client);
    const clients = this.#clients.get(organization) ?? new Set();
    this.#clients.set(organization, clients.add(client));
    return { pieces: client.pieces(missed), broken: client.broken };
  }

  /** Rows that a returning client has missed; null: none, or unknown, which the client is sent. */
  #missedBy(client: StreamClient): MissedRows | null {
    const { lastEventId } = client.request;
    if (lastEventId === null) return null;
    const since = parsePosition(lastEventId);
    const position = this.#position();
    if (lastEventId === position) return null;
    const isOfEpoch = since !== null && since.epoch === this.#epoch && since.rows.length === this.#rows.length;
    if (!isOfEpoch || this.#isBehind(since)) {
      client.reset(isOfEpoch ? 'trimmed' : 'epoch', position);
      return null;
    }
    client.holdLive();
    return this.#missed(client, since, [...this.#rows]);
  }

  async *#missed(client: StreamClient, since: FeedPosition, until: readonly string[]): MissedRows {
    const { organization } = client.request;
    const rows = [...since.rows];
    const parts = rows.map(positionPart);
    const moveTo = ({ shard, id }: Pick<StoredRow, 'shard' | 'id'>): void => {
      rows[shard] = id;
      parts[shard] = positionPart(id);
    };
    for (;;) {
      const page = await this.#pages.run(1, () => this.#page(organization, rows, until));
      if (page === 'end') return;
      if (page === 'trimmed') return client.loseMissed(positionText(since.epoch, until.map(positionPart)));
      yield page.own.map((row) => {
        moveTo(row);
        return { row, id: positionText(since.epoch, parts) };
      });
      for (const row of page.last) moveTo(row);
    }
  }

  /** The rows of the organization among the next ones of each shard, by time, and the last one of each shard. */
  async #page(
    organization: string,
    rows: readonly string[],
    until: readonly string[],
  ): Promise<{ own: StoredRow[]; last: Pick<StoredRow, 'shard' | 'id'>[] } | 'end' | 'trimmed'> {
    const behind = rows.flatMap((row, shard) => {
      const end = until[shard] ?? row;
      return compareRows(row, end) < 0 ? [{ shard, row, end }] : [];
    });
    if (behind.length === 0) return 'end';
    const { reader } = this.#options;
    const read = await Promise.all(
      behind.map(async ({ shard, row, end }) => ({ shard, end, found: await reader.between(shard, row, end, organization) })),
    );
    const turn = loopTurns.of(organization);
    const own: StoredRow[] = [];
    const last: Pick<StoredRow, 'shard' | 'id'>[] = [];
    for (const { shard, end, found } of read) {
      if (found === null) return 'trimmed';
      await turn.rest();
      own.push(...found.filter((row) => ownerOf(row) === organization));
      // The last row itself may have left the feed, as one of an organization that keeps none.
      const next = found.length < rowsPerRead ? undefined : found.at(-1);
      last.push({ shard, id: next?.id ?? end });
    }
    own.sort((one, other) => Number.parseInt(one.id, 10) - Number.parseInt(other.id, 10));
    return { own, last };
  }

  /** Waits until this process has read what the client has seen of another one. */
  async #catchUp(since: FeedPosition, signal: AbortSignal): Promise<void> {
    for (let waitedMs = 0; waitedMs < catchUpMs && !signal.aborted; waitedMs += catchUpStepMs) {
      if (since.epoch !== this.#epoch || !this.#isBehind(since)) return;
      await this.#options.clock.sleep(catchUpStepMs, signal);
    }
  }

  #isBehind({ rows }: FeedPosition): boolean {
    return rows.some((row, shard) => compareRows(row, this.#rows[shard] ?? row) > 0);
  }

  #reading(): Promise<void> {
    this.#started ??= this.#start();
    return this.#started;
  }

  async #start(): Promise<void> {
    try {
      this.#moveTo(await this.#options.reader.watch());
    } catch (error) {
      this.#started = null;
      throw error;
    }
    const running = new AbortController();
    void this.#tick(AbortSignal.any([running.signal, this.#closing.signal]));
    void this.#read().then(() => running.abort());
  }

  async #read(): Promise<void> {
    const { reader, clock, logger } = this.#options;
    const { signal } = this.#closing;
    let renewAtMs = clock.now() + renewEveryMs;
    let isKept = true;
    let waitMs = 0;
    while (this.#shares.open > 0 && !signal.aborted) {
      if (clock.now() >= renewAtMs) {
        isKept = await this.#keep(isKept);
        renewAtMs = clock.now() + (isKept ? renewEveryMs : backoffMs.max);
      }
      try {
        const { rows, losers } = await reader.after(this.#rows, signal);
        if (losers === null) await this.#restart('trimmed');
        else this.#deliver(rows, losers);
        waitMs = 0;
      } catch (error) {
        if (signal.aborted) break;
        if (waitMs === 0) logger.warn({ err: error }, 'the live feed cannot be read; retrying');
        waitMs = Math.min(backoffMs.max, Math.max(backoffMs.first, waitMs * 2));
        renewAtMs = 0;
        await clock.sleep(waitMs, signal);
      }
    }
    this.#started = null;
  }

  /** Returns whether shards write their feeds for longer. Where they do not, what they have written is still read. */
  async #keep(wasKept: boolean): Promise<boolean> {
    try {
      await this.#renew();
      return true;
    } catch (error) {
      if (wasKept && !this.#closing.signal.aborted) this.#options.logger.warn({ err: error }, 'the live feed cannot be renewed; retrying');
      return false;
    }
  }

  async #renew(): Promise<void> {
    const now = await this.#options.reader.watch();
    if (now.epoch !== this.#epoch) await this.#restart('epoch');
    // A failover to a replica has lost rows.
    else if (this.#rows.some((row, shard) => compareRows(row, now.rows[shard] ?? row) > 0)) await this.#restart('trimmed');
  }

  /** Continues from the current end of the feeds, and notifies all clients. */
  async #restart(reason: 'epoch' | 'trimmed'): Promise<void> {
    this.#moveTo(await this.#options.reader.watch());
    for (const client of this.#all()) client.reset(reason, this.#position());
  }

  #moveTo({ epoch, rows }: FeedPosition): void {
    this.#epoch = epoch;
    this.#rows = [...rows];
    this.#parts = rows.map(positionPart);
  }

  /** `losers`: organizations of which rows are missing between these. */
  #deliver(rows: readonly StoredRow[], losers: readonly string[]): void {
    for (const stored of rows) {
      this.#rows[stored.shard] = stored.id;
      this.#parts[stored.shard] = positionPart(stored.id);
      const clients = this.#clients.get(ownerOf(stored));
      const row = clients === undefined ? null : parseFeedRow(stored.shard, stored.id, stored.text);
      if (clients === undefined || row === null) continue;
      const id = this.#position();
      for (const client of clients) client.push(row, id);
    }
    for (const organization of losers)
      for (const client of this.#clients.get(organization) ?? []) client.reset('trimmed', this.#position());
  }

  async #tick(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#options.clock.sleep(tickMs, signal);
      for (const client of this.#all()) client.tick();
    }
  }

  #position(): string {
    return positionText(this.#epoch, this.#parts);
  }

  #all(): StreamClient[] {
    return [...this.#clients.values()].flatMap((clients) => [...clients]);
  }
}

function ownerOf({ text }: StoredRow): string {
  return ownerOfRows(organizationOfRow(text));
}

function ending(): PosthornError {
  return new PosthornError('UNAVAILABLE', 'The process ends: connect again.', { retryAfterSeconds: 1 });
}
