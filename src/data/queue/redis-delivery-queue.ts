import { randomBytes } from 'node:crypto';
import { defaultPool } from '../../core/default-pool.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, type Script, type ScriptArgument } from '../../redis/script.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';
import type { StoredEvent } from '../shard/event-text.ts';
import { type ChunkedPayload, PayloadChunks } from '../shard/payload-chunks.ts';
import { poolSuffix } from '../shard/pool-suffix.ts';
import { recordKey } from '../shard/record-key.ts';
import { bytes, integer, list, text } from '../shard/script-reply.ts';
import { type ShardKeys, shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { readBatch, readEvents } from './batch-reply.ts';
import { configureArgument, failoverArgument, windowsText } from './configure-arguments.ts';
import type {
  Batch,
  BatchMember,
  DeletedTarget,
  DequeueAnswer,
  Job,
  QueueStats,
  Retention,
  SettleAnswer,
  Settlement,
  ShardHints,
  ShardState,
  SharedLimiter,
  SlowAttempts,
  Target,
  TargetSetting,
  TurnOrder,
  UnsentMember,
} from './delivery-queue.ts';
import { decodeOutput, type EventOutput, encodeOutput } from './event-output.ts';
import { jobsOf, targetOf } from './job-reply.ts';
import { queueStats, shardHints, shardState, targetPage, unlessNegative } from './queue-replies.ts';
import { settleArguments } from './settle-arguments.ts';

const script = (name: string): Script => new ShardScript(new URL(`./${name}.lua`, import.meta.url));
const scripts = {
  dequeue: script('dequeue'),
  adopt: script('adopt'),
  settle: script('settle'),
  output: script('output'),
  promote: script('promote'),
  reclaim: script('reclaim'),
  refreshShard: script('refresh-shard'),
  configure: script('configure'),
  sharedLimit: script('shared-limit'),
  targets: script('targets'),
  targetsWithWork: script('targets-with-work'),
  drop: script('drop'),
  dropDue: script('drop-due'),
  dueNow: script('due-now'),
  prune: script('prune'),
  pruneAccount: script('prune-account'),
  expirePaused: script('expire-paused'),
  stats: script('stats'),
  endBatches: script('end-batches'),
  batchUnsent: script('batch-unsent'),
  batchCut: script('batch-cut'),
  outputs: script('outputs'),
  foldTallies: script('fold-tallies'),
  sampleBacklogs: script('sample-backlogs'),
};

/** Longer than the longest attempt (120 s) and its settling: only a worker that lives but forgot reaches it. */
const holdMs = 150_000;
const targetsPerStep = 500;
const recordsPerPrune = 100;
const membersPerStep = 200;
const unsentLetters = { filtered: 'f', transform_failed: 't', dlq: 'q' } satisfies Record<UnsentMember['status'], string>;
/** 72 h. */
const longestCircuitWaitMs = 259_200_000;
/** Time for which unarchived messages stay beyond their retention. */
const longestArchiveWaitMs = 259_200_000;
const unwrittenModes = { stays: 0, 'goes where the archive fails': 1, goes: 2 };
/** So long a tally grows before it becomes part of the statistics: what it saves is reading and writing these. */
const defaultTallyMs = 10_000;
/** Slow attempts of a worker with capacity for any number of them. */
const noSlowAttempts: SlowAttempts = { slots: 1_000_000, held: 0, byAccount: new Map() };

/**
 * The work of one shard as a worker sees it. Every call is one script and may be sent again; a call that throws may have
 * happened. Throws UNAVAILABLE when Redis does not answer.
 */
export class RedisDeliveryQueue {
  readonly #redis: RedisClient;
  readonly #keys: ShardKeys;
  readonly #memoryLimit: number | '';
  readonly #tallyMs: number;
  readonly #poolSuffix: string;
  readonly #chunks: PayloadChunks;

  /** `memoryLimitBytes`: what counts where Redis has no maxmemory of its own; `tallyMs`: how long a tally of the analytics grows; `pool`: whose work it leases. */
  constructor({
    redis,
    payloads = redis,
    prefix,
    shard = 0,
    memoryLimitBytes,
    tallyMs = defaultTallyMs,
    pool = defaultPool,
  }: {
    redis: RedisClient;
    /** Another connection, for the chunks of large payloads: other commands do not wait behind them. Default: the same. */
    payloads?: RedisClient | undefined;
    prefix: string;
    shard?: number;
    memoryLimitBytes?: number;
    tallyMs?: number;
    pool?: string;
  }) {
    this.#poolSuffix = poolSuffix(pool);
    this.#tallyMs = tallyMs;
    this.#redis = redis;
    this.#chunks = new PayloadChunks({ redis: payloads, prefix });
    this.#memoryLimit = memoryLimitBytes ?? '';
    this.#keys = shardKeys(prefix, shard);
  }

  /** Up to `count` (1..64) messages, fairest first. If there are none, it searches for ends. */
  async dequeue(worker: string, count: number, slow: SlowAttempts = noSlowAttempts, order: TurnOrder = {}): Promise<DequeueAnswer> {
    const turns = [order.dominant ?? '', this.#poolSuffix, order.without?.join(' ') ?? ''];
    const reply = list(await this.#runBuffer(scripts.dequeue, [worker, count, holdMs, slowText(slow), ...turns]));
    const [hints, unconfigured, ...jobs] = reply;
    return { ...shardHints(hints), jobs: await this.#jobs(jobs), unconfigured: list(unconfigured).map(targetOf) };
  }

  /** The batch of a job; null when it has ended. */
  async batch(job: Job): Promise<Batch | null> {
    try {
      return await readBatch(this.#redis, this.#keys, job.messageKey);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** The events of members, in their order; null for a payload that is gone. */
  async events(members: readonly BatchMember[]): Promise<(StoredEvent | null)[]> {
    try {
      return await readEvents(this.#redis, this.#keys, members);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  /** The payload of an event that has it in chunks; null when it is gone. */
  payload(chunks: ChunkedPayload): Promise<Buffer | null> {
    return this.#chunks.read(this.#keys.shard, chunks);
  }

  /** Members for which the output of the route's transform is kept, in their order. */
  async haveOutputs({ routeId }: Target, members: readonly BatchMember[]): Promise<boolean[]> {
    const found: boolean[] = [];
    for (let first = 0; first < members.length; first += membersPerStep) {
      const some = members.slice(first, first + membersPerStep);
      const args = some.flatMap(({ messageKey, eventId }) => [messageKey, recordKey(eventId, this.#keys.shard) ?? '']);
      found.push(...list(await this.#run(scripts.outputs, [routeId, ...args])).map((each) => integer(each) === 1));
    }
    return found;
  }

  /** Records members that are not to be written: with the end of the batch they end so. False when it has ended. */
  async leaveOut(job: Job, members: readonly UnsentMember[]): Promise<boolean> {
    const named = members.map(({ messageKey, status, reason }) => ({
      message: messageKey,
      letter: unsentLetters[status],
      reason: reason ?? '',
    }));
    return integer(await this.#run(scripts.batchUnsent, [namedArgument({ batch: job.messageKey, members: named })])) === 1;
  }

  /** Makes a batch of its own of the members from `first` on, and queues it. False when the worker holds the batch no more. */
  async cut(worker: string, job: Job, { last, first }: { last: BatchMember; first: BatchMember }): Promise<boolean> {
    const cut = { worker, handle: job.handle, id: job.messageKey, last: last.messageKey, first: first.messageKey };
    return integer(await this.#run(scripts.batchCut, [namedArgument(cut)])) === 1;
  }

  /** Lets members of ended batches follow them, a bounded number; `hasEndedBatches`: call again. */
  async endBatches(): Promise<ShardHints> {
    const [hints] = list(await this.#run(scripts.endBatches, [membersPerStep, this.#poolSuffix]));
    return shardHints(hints);
  }

  /** Leases of the worker that it does not know. */
  async adopt(worker: string, knownHandles: readonly string[]): Promise<Job[]> {
    return await this.#jobs(list(await this.#runBuffer(scripts.adopt, [worker, holdMs, ...knownHandles])));
  }

  async settle(worker: string, settlements: readonly Settlement[], { ring = false }: { ring?: boolean } = {}): Promise<SettleAnswer> {
    const args = settlements.flatMap(settleArguments);
    const [hints, settled] = list(await this.#run(scripts.settle, [worker, settlements.length, ring ? 1 : 0, this.#poolSuffix, ...args]));
    return { ...shardHints(hints), settled: list(settled).map((each) => integer(each) === 1) };
  }

  /**
   * The output of a transform that is kept for a message, which is that of its event and route; null when there is none. `made` is
   * kept when there is none, and then returned.
   */
  async output(
    { messageKey, eventId, target }: { messageKey: string; eventId: string; target: { routeId: string } },
    made: EventOutput | null,
  ): Promise<EventOutput | null> {
    const asked = namedArgument({ message: messageKey, event: recordKey(eventId, this.#keys.shard) ?? '', route: target.routeId });
    const kept = bytes(await this.#runBuffer(scripts.output, [asked, made === null ? '' : encodeOutput(made)]));
    return kept.length === 0 ? made : decodeOutput(kept);
  }

  /** Moves due retries and waiting targets; `nextDueMs` 0 means: call again. */
  async promote(): Promise<ShardHints & { moved: number }> {
    const [hints, moved] = list(await this.#run(scripts.promote, [longestCircuitWaitMs, this.#poolSuffix]));
    return { ...shardHints(hints), moved: integer(moved) };
  }

  /** Requeues the leases of dead workers, and leases past their deadline. */
  async reclaim(deadWorkers: readonly string[]): Promise<{ requeued: number; hasMore: boolean }> {
    const [requeued, more] = list(await this.#run(scripts.reclaim, deadWorkers));
    return { requeued: integer(requeued), hasMore: integer(more) === 1 };
  }

  /** `totalSlots`: what all living workers of the pool can do at a time. */
  async refreshShard(worker: string, totalSlots: number): Promise<ShardState> {
    const own = { pool: this.#poolSuffix, memoryLimit: this.#memoryLimit, tallyMs: this.#tallyMs };
    const argument = namedArgument({ id: worker, totalSlots, marker: randomBytes(9).toString('base64url'), ...own });
    return shardState(await this.#run(scripts.refreshShard, [argument]));
  }

  /** Puts the setting of a target in force; returns whether messages that are to move on wait for their next attempt. */
  async configure(target: Target, setting: TargetSetting): Promise<ShardHints & { hasRetries: boolean }> {
    for (let hasOutbox = false; ; ) {
      const [hints, reply] = list(await this.#run(scripts.configure, [configureArgument(target, setting, this.#keys.shard)]));
      const found = shardHints(hints);
      hasOutbox ||= found.hasOutbox;
      if (integer(reply) !== 3) return { ...found, hasOutbox, hasRetries: integer(reply) === 2 };
    }
  }

  /** Ends the waits for the next attempt at targets that do not serve, step by step from cursor `0` on; `next` is null at the end. */
  async endWaits(targets: readonly Target[], cursor: string): Promise<{ next: string | null }> {
    const [next] = list(await this.#run(scripts.dueNow, [cursor, ...targets.map(({ number }) => number)]));
    return { next: text(next) === '0' ? null : text(next) };
  }

  /** Puts another setting of a shared limiter in force where it is in use; null: it is gone. */
  async configureShared(id: string, limiter: SharedLimiter | null): Promise<ShardHints> {
    const setting = limiter === null ? [] : [limiter.revision, windowsText(limiter)];
    const [hints] = list(await this.#run(scripts.sharedLimit, [id, ...setting]));
    return shardHints(hints);
  }

  /** The paused targets, step by step from cursor `0` on; `next` is null at the end. */
  async pausedTargets(cursor: string): Promise<{ targets: Target[]; next: string | null }> {
    return targetPage(await this.#run(scripts.targets, ['paused', targetsPerStep, cursor]));
  }

  /** Targets by number from `first` on; `next` is null at the end. `onlyBound`: those that wait by their setting. */
  async targets(first: number, { onlyBound = false }: { onlyBound?: boolean } = {}): Promise<{ targets: Target[]; next: number | null }> {
    const [next, found] = list(await this.#run(scripts.targets, [first, targetsPerStep, onlyBound ? 'bound' : '']));
    return { targets: list(found).map(targetOf), next: integer(next) === 0 ? null : integer(next) };
  }

  /** Named targets that are paused, or for which something is queued or waits to be tried again. */
  async targetsWithWork(names: readonly Pick<Target, 'org' | 'routeId' | 'destinationId'>[]): Promise<Target[]> {
    const targets = names.map(({ org, routeId, destinationId }) => [org, routeId, destinationId]);
    const [, found] = list(await this.#run(scripts.targetsWithWork, [namedArgument({ targets })]));
    return list(found).map(targetOf);
  }

  /** The same of all targets of routes of an organization, step by step from cursor `0` on; `next` is null at the end. */
  async targetsOfRoutes(org: string, routeIds: readonly string[], cursor: string): Promise<{ targets: Target[]; next: string | null }> {
    return targetPage(await this.#run(scripts.targetsWithWork, [namedArgument({ org, cursor, maxLooks: targetsPerStep, ids: routeIds })]));
  }

  /** All targets of routes and destinations of an organization, in the same way. */
  async targetsOf(org: string, ids: readonly string[], cursor: string): Promise<{ targets: Target[]; next: string | null }> {
    const all = namedArgument({ org, cursor, maxLooks: targetsPerStep, ids, withoutWork: true });
    return targetPage(await this.#run(scripts.targetsWithWork, [all]));
  }

  /**
   * Sends what the target has queued to a failover destination or back to where it came from, else to the dead letters; returns how many of these in this
   * step, whether there is more, and whether retries wait.
   */
  async drop({
    target,
    reason,
    failover,
  }: DeletedTarget): Promise<ShardHints & { dropped: number; hasMore: boolean; hasRetries: boolean }> {
    const reply = list(await this.#run(scripts.drop, [target.number, reason, failoverArgument(failover, this.#keys.shard)]));
    const [hints, dropped, more, retries] = reply;
    return { ...shardHints(hints), dropped: integer(dropped), hasMore: integer(more) === 1, hasRetries: integer(retries) === 1 };
  }

  /** The same for waiting retries of several targets; `next` is null at the end. */
  async dropRetries(gone: readonly DeletedTarget[], cursor: string): Promise<ShardHints & { dropped: number; next: string | null }> {
    const targets = gone.map(({ target, reason, failover }) => ({
      number: target.number,
      reason,
      wayOut: failoverArgument(failover, this.#keys.shard),
    }));
    const [hints, next, dropped] = list(await this.#run(scripts.dropDue, [namedArgument({ cursor, targets })]));
    return { ...shardHints(hints), dropped: integer(dropped), next: text(next) === '0' ? null : text(next) };
  }

  /** Removes the oldest history beyond its retention, a bounded number of records; `lost`: how many of them an archive was to have. */
  async prune({
    finishedMs,
    deadLettersMs,
    unwritten = 'stays',
    largestFirst = false,
  }: Retention): Promise<{ removed: number; hasMore: boolean; memoryShare: number | null; lost: number }> {
    let archived: string | null = null;
    if (largestFirst) {
      const of = [recordsPerPrune, this.#memoryLimit, deadLettersMs === 0 ? 1 : 0];
      const [removed, found, permille, account] = list(await this.#run(scripts.pruneAccount, of));
      if (integer(found) === 1) return { removed: integer(removed), hasMore: true, memoryShare: unlessNegative(permille, 1000), lost: 0 };
      archived = text(account) || null;
    }
    const archives = { unwritten: unwrittenModes[unwritten], longestWaitMs: longestArchiveWaitMs, firstArchive: archived };
    const bounds = { maxRecords: recordsPerPrune, memoryLimit: this.#memoryLimit };
    const retention = namedArgument({ finishedMs, deadLettersMs, ...bounds, ...archives });
    const [removed, more, permille, lost] = list(await this.#run(scripts.prune, [retention]));
    return { removed: integer(removed), hasMore: integer(more) === 1, memoryShare: unlessNegative(permille, 1000), lost: integer(lost) };
  }

  /**
   * Sends what has waited for a disabled route or destination for longer than this to the dead letters; checks the next of them with each
   * call, and ends a bounded number of messages.
   */
  async expirePaused(longestMs: number): Promise<{ expired: number; hasMore: boolean }> {
    const [expired, more] = list(await this.#run(scripts.expirePaused, [longestMs]));
    return { expired: integer(expired), hasMore: integer(more) === 1 };
  }

  /** Samples what waits at the targets for the series of the analytics, at most once in five minutes. */
  async sampleBacklogs(): Promise<void> {
    await this.#run(scripts.sampleBacklogs, []);
  }

  /** Adds the oldest tallies of the analytics to the statistics of their periods; returns whether another one is due. */
  async foldTallies(): Promise<boolean> {
    return integer(await this.#run(scripts.foldTallies, [this.#tallyMs])) === 1;
  }

  async figures(): Promise<QueueStats> {
    return queueStats(await this.#run(scripts.stats, [this.#poolSuffix]));
  }

  async #jobs(reply: readonly unknown[]): Promise<Job[]> {
    return await jobsOf(this.#keys.shard, reply, async (key) => {
      try {
        return await this.#redis.getBuffer(this.#keys.event(key));
      } catch (error) {
        throw redisUnavailable(error);
      }
    });
  }

  async #run(what: Script, args: readonly ScriptArgument[]): Promise<unknown> {
    try {
      return await what.run(this.#redis, this.#keys.declared, args);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  async #runBuffer(what: Script, args: readonly ScriptArgument[]): Promise<unknown> {
    try {
      return await what.runBuffer(this.#redis, this.#keys.declared, args);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}

function slowText({ slots, held, byAccount }: SlowAttempts): string {
  return [slots, held, ...[...byAccount].flat()].join(' ');
}
