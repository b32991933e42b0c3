import { z } from 'zod';
import { PosthornError } from '../../core/errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import type { Kind } from '../../resources/kinds.ts';
import { type Change, ChangeSubscriber } from '../objects/change-subscriber.ts';
import { expired, type Position, type Revision, requireInLog, toVersion } from '../objects/store-version.ts';
import type { WatchEvent } from '../store.ts';
import type { ObjectCodec } from './codec.ts';
import { reachable } from './reachable.ts';

export interface ChangeFollowerOptions {
  redis: RedisClient;
  openBlocking: () => RedisClient;
  changesKey: string;
  position: () => Promise<Position>;
  codec: ObjectCodec;
  blockMs: number;
}

const batch = 500;
const entries = z.array(z.tuple([z.string(), z.array(z.string())]));
const readReply = z.tuple([z.tuple([z.string(), entries])]).nullable();

/** One run of the follower, from the first watcher to the last or to the first failure. */
interface Run {
  connection: RedisClient;
  /** Resolves once it is connected and the position is known. */
  started: Promise<void>;
  subscribers: Set<Follower>;
}
interface Follower {
  offer(change: Change): void;
  end(error?: PosthornError): void;
}

/**
 * Follows the log of changes for all watches of this process over one blocking connection, which is open while somebody
 * watches. All watches end EXPIRED when changes are missing, when the store was recreated, and when Redis does not respond: after a failover that has
 * lost changes, their revisions are assigned again.
 */
export class ChangeFollower {
  readonly #options: ChangeFollowerOptions;
  #run: Run | null = null;

  constructor(options: ChangeFollowerOptions) {
    this.#options = options;
  }

  async *follow<K extends Kind>(
    kind: K,
    namespace: string | undefined,
    from: Revision,
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<K>> {
    requireInLog(from, await this.#options.position().catch(throwEnd), 'the version');
    if (signal.aborted) return;
    const subscriber = new ChangeSubscriber(kind, namespace, from);
    // Changes that arrive while the past is being read wait here.
    const meanwhile: Change[] = [];
    let live = false;
    const follower: Follower = {
      offer: (change) => (live ? subscriber.offer(change) : void meanwhile.push(change)),
      end: (error) => subscriber.end(error),
    };
    const run = this.#join(follower);
    const leave = (): void => this.#leave(run, follower);
    signal.addEventListener('abort', leave, { once: true });
    try {
      await run.started;
      await this.#replay(subscriber, from).catch(throwEnd);
      for (const change of meanwhile.splice(0)) subscriber.offer(change);
      live = true;
      yield* subscriber.events(signal);
    } finally {
      signal.removeEventListener('abort', leave);
      leave();
    }
  }

  /** Ends every watch. */
  close(): void {
    if (this.#run !== null) this.#stop(this.#run, undefined);
  }

  #join(follower: Follower): Run {
    if (this.#run === null) {
      const connection = this.#options.openBlocking();
      // Its reports come out of its commands too.
      connection.on('error', () => {});
      const started = Promise.withResolvers<void>();
      const run: Run = { connection, started: started.promise, subscribers: new Set() };
      this.#run = run;
      this.#read(run, started.resolve).catch((error: unknown) => {
        const failure = asEnd(error);
        started.reject(failure);
        this.#stop(run, failure);
      });
      started.promise.catch(() => {});
    }
    this.#run.subscribers.add(follower);
    return this.#run;
  }

  #leave(run: Run, follower: Follower): void {
    // Everybody leaves twice: when the signal aborts, and at the end.
    if (run.subscribers.delete(follower) && run.subscribers.size === 0) this.#stop(run, undefined);
  }

  #stop(run: Run, error: PosthornError | undefined): void {
    if (this.#run !== run) return;
    this.#run = null;
    for (const follower of run.subscribers) follower.end(error);
    run.connection.disconnect();
  }

  async #read(run: Run, started: () => void): Promise<void> {
    const { changesKey, blockMs, position } = this.#options;
    await run.connection.connect();
    const { marker, revision: begin } = await position();
    started();
    let revision = begin;
    while (this.#run === run) {
      const reply = await run.connection.xread('COUNT', batch, 'BLOCK', blockMs, 'STREAMS', changesKey, `${revision}-0`);
      const [stream] = readReply.parse(reply) ?? [];
      if (stream === undefined) requireInLog({ marker, revision }, await position(), 'the version');
      for (const entry of stream?.[1] ?? []) {
        const change = this.#toChange(entry, marker);
        if (change.revision !== revision + 1) throw expired('the version');
        revision = change.revision;
        for (const follower of run.subscribers) follower.offer(change);
      }
    }
  }

  async #replay<K extends Kind>(subscriber: ChangeSubscriber<K>, from: Revision): Promise<void> {
    let after = from.revision;
    for (;;) {
      const reply = await reachable(this.#options.redis.xrange(this.#options.changesKey, `(${after}-0`, '+', 'COUNT', batch));
      for (const entry of reply) {
        const change = this.#toChange(entry, from.marker);
        subscriber.offer(change);
        after = change.revision;
      }
      if (reply.length < batch) return;
    }
  }

  #toChange([id, fields]: [string, string[]], marker: string): Change {
    const revision = Number.parseInt(id, 10);
    const [, type, , kind, , namespace = '', , json = ''] = fields;
    return {
      revision,
      kind: kind as Kind,
      type: type as Change['type'],
      namespace: namespace === '' ? undefined : namespace,
      object: () => this.#options.codec.decodeListed(kind as Kind, json, toVersion({ revision, marker })),
    };
  }
}

/** How a watch ends. */
function asEnd(error: unknown): PosthornError {
  const failure = asStoreError(error);
  return failure.code === 'UNAVAILABLE' ? new PosthornError('EXPIRED', `${failure.message}; list again`, { cause: error }) : failure;
}

function throwEnd(error: unknown): never {
  throw asEnd(error);
}

function asStoreError(error: unknown): PosthornError {
  if (error instanceof PosthornError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new PosthornError('UNAVAILABLE', `the log of changes in Redis cannot be read: ${reason}`, { cause: error });
}
