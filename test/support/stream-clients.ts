import { once } from 'node:events';
import { Registry } from 'prom-client';
import type { Clock } from '../../src/core/clock.ts';
import { FeedReader, feedBlockMs } from '../../src/data/feed/feed-reader.ts';
import { streamMetrics } from '../../src/feed/metrics.ts';
import type { StreamRequest } from '../../src/feed/stream-client.ts';
import { type OpenStream, StreamHub } from '../../src/feed/stream-hub.ts';
import type { StreamLimits } from '../../src/feed/stream-limits.ts';
import { blockingConnection, type RedisClient } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { eventually } from './eventually.ts';
import { silentLogger } from './logger.ts';

/** An event of a stream, as its client reads it. */
export interface Seen {
  type: string;
  id: string;
  data: Record<string, unknown>;
}

/** Reads Server-Sent Events; `id` is the one at which a client would resume. */
export class SeenEvents {
  readonly all: Seen[] = [];
  heartbeats = 0;
  lastId = '';
  #rest = '';

  add(text: string): void {
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) this.#addBlock(block);
  }

  types(): string[] {
    return this.all.map(({ type }) => type);
  }

  #addBlock(block: string): void {
    let type = '';
    let data: string | null = null;
    for (const line of block.split('\n')) {
      if (line.startsWith(':')) this.heartbeats++;
      if (line.startsWith('id: ')) this.lastId = line.slice(4);
      if (line.startsWith('event: ')) type = line.slice(7);
      if (line.startsWith('data: ')) data = line.slice(6);
    }
    if (data !== null) this.all.push({ type, id: this.lastId, data: JSON.parse(data) });
  }
}

export interface TestClient {
  readonly seen: SeenEvents;
  /** How the stream has ended; null: it has not. */
  readonly ended: () => boolean;
  readonly stream: OpenStream;
  hangUp(): void;
}

export interface TestHub {
  readonly hub: StreamHub;
  readonly metrics: Registry;
  /** A client that reads what comes; with `reads` false one that reads nothing. */
  connect(request?: Partial<StreamRequest>, options?: { reads?: boolean }): Promise<TestClient>;
  close(): void;
}

/** A hub as a process of the API has it. */
export function startHub(
  redis: { client: RedisClient; blocking: string },
  {
    prefix,
    shards = 1,
    clock = systemClock,
    limits = {},
  }: { prefix: string; shards?: number; clock?: Clock; limits?: Partial<StreamLimits> },
): TestHub {
  const metrics = new Registry();
  const blocking = blockingConnection(redis.blocking, { blockMs: feedBlockMs + 30_000 });
  blocking.on('error', () => {});
  const reader = new FeedReader({ redis: redis.client, blocking, prefix, shards: () => shards, clock: systemClock });
  const hub = new StreamHub({ reader, clock, logger: silentLogger, metrics: streamMetrics(metrics), limits });
  return {
    hub,
    metrics,
    connect: async (request = {}, { reads = true } = {}) => {
      const leaving = new AbortController();
      const stream = await hub.open({
        organization: 'org_a',
        credential: 'key_a',
        lastEventId: null,
        matches: () => true,
        show: (row) => ({ type: `${row.kind}.${row.status}`, json: JSON.stringify(row) }),
        isAllowed: async () => true,
        signal: leaving.signal,
        ...request,
      });
      const seen = new SeenEvents();
      let hasEnded = false;
      void (async () => {
        for await (const text of stream.pieces) {
          if (stream.broken.aborted) break;
          seen.add(text);
          if (!reads) await once(stream.broken, 'abort');
        }
        hasEnded = true;
      })();
      await eventually('the stream to begin', 30_000, () => seen.lastId !== '' || request.lastEventId != null);
      return { seen, stream, ended: () => hasEnded, hangUp: () => leaving.abort() };
    },
    close: () => hub.close(),
  };
}

/** The ids of the events that the client has seen stored. */
export function eventsOf({ seen }: TestClient): unknown[] {
  return seen.all.filter(({ type }) => type === 'event.pending').map(({ data }) => data['eventId']);
}

export function sees(client: TestClient, count: number): Promise<true> {
  return eventually(`${count} events`, 30_000, () => eventsOf(client).length >= count || undefined);
}

/** The value of a metric without labels. */
export async function figure({ metrics }: TestHub, name: string): Promise<number> {
  return (await metrics.getSingleMetric(name)?.get())?.values[0]?.value ?? 0;
}
