import { z } from 'zod';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { intakeKeys } from '../intake/intake-keys.ts';
import { type QuotaSteps, quotaStep } from '../intake/quota-steps.ts';
import type { ReplayRun } from './replay-run.ts';
import { parseReplayState, type ReplayState, replayRun } from './replay-state.ts';

const readScript = new Script(new URL('./replay-read.lua', import.meta.url));
const saveScript = new Script(new URL('./replay-save.lua', import.meta.url));
const leaseScript = new Script(new URL('./replay-lease.lua', import.meta.url));
/** Most running replays of an organization; the others wait. */
export const maxRunningReplays = 10;
const openPerRead = 500;

const readReply = z.union([z.tuple([]), z.tuple([z.string(), z.number()])]);
const saveReply = z.tuple([z.enum(['saved', 'stale', 'many', 'quota'])]).rest(z.number());

/** A replay as it was read. */
export interface KnownReplay {
  version: number;
  state: ReplayState;
  /** Messages that it has queued and that have not been seen end. */
  open: number;
}

/** Changes of one step. */
export interface ReplayChange {
  /** 0: it is new. */
  version: number;
  state: ReplayState;
  /** `enter`: it becomes one of the running ones; `end`: it is one no more. */
  place?: 'enter' | 'end';
  /**
   * Messages to count against a month, negative ones are given back. `limit`: maximum per month; absent: any number. `isLastTry`: when they exceed it
   * for them, the month is full.
   */
  month?: { month: string; messages: number; limit?: number; isLastTry?: boolean };
  /** Ids of messages that were queued, and of those that have ended. */
  queued?: readonly string[];
  ended?: readonly string[];
}

/** The replays of organizations in Redis. Rejects with UNAVAILABLE when Redis does not answer. */
export class RedisReplayRuns {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  readonly #quotaSteps: Pick<QuotaSteps, 'reached'> | null;

  /** `quotaSteps`: absent: replays publish no steps of the month. */
  constructor({ redis, prefix, quotaSteps }: { redis: RedisClient; prefix: string; quotaSteps?: Pick<QuotaSteps, 'reached'> }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#quotaSteps = quotaSteps ?? null;
  }

  async find(org: string, identity: string): Promise<ReplayRun | null> {
    const known = await this.read(org, identity);
    return known && replayRun(identity, known.state);
  }

  /** All of an organization. */
  async runs(org: string): Promise<ReplayRun[]> {
    const stored = await this.#redis.hgetall(intakeKeys(this.#prefix, org).replays).catch(throwUnavailable);
    return Object.entries(stored).map(([identity, text]) => replayRun(identity, parseReplayState(text).state));
  }

  async read(org: string, identity: string): Promise<KnownReplay | null> {
    const [stored, open] = readReply.parse(await this.#run(readScript, org, [identity]));
    return stored === undefined || open === undefined ? null : { ...parseReplayState(stored), open };
  }

  /** `stale`: another process has written meanwhile. `many`: enough are running. `quota`: the month's limit is reached. Then nothing is written. */
  async save(org: string, identity: string, change: ReplayChange): Promise<z.infer<typeof saveReply>[0]> {
    const { version, state, place, month, queued = [], ended = [] } = change;
    const saved = namedArgument({
      identity,
      version,
      state: JSON.stringify(state),
      place,
      maxRunning: maxRunningReplays,
      month: month && { name: month.month, messages: month.messages, limit: month.limit, isLastTry: month.isLastTry },
      queued,
      ended,
    });
    const [reply, ...step] = saveReply.parse(await this.#run(saveScript, org, [saved]));
    if (month !== undefined) void this.#quotaSteps?.reached(quotaStep(step, { org, month: month.month, limit: month.limit ?? null }));
    return reply;
  }

  /** Some of the messages that have not been seen end, from a cursor on (begin with 0), and the cursor of the next ones. */
  async open(org: string, identity: string, cursor: string): Promise<{ next: string; ids: string[] }> {
    const key = intakeKeys(this.#prefix, org).openOfReplay(identity);
    const [next, ids] = await this.#redis.sscan(key, cursor, 'COUNT', openPerRead).catch(throwUnavailable);
    return { next, ids };
  }

  /** Identities of the running ones. */
  async running(org: string): Promise<string[]> {
    return await this.#redis.smembers(intakeKeys(this.#prefix, org).runningReplays).catch(throwUnavailable);
  }

  /** Whether the worker may carry the replay on for `ms`; 0 gives the lease back. Two at a time would do no harm but work in vain. */
  async lease(org: string, identity: string, worker: string, ms: number): Promise<boolean> {
    return (await this.#run(leaseScript, org, [identity, worker, ms])) === 1;
  }

  async #run(script: Script, org: string, args: readonly (string | number)[]): Promise<unknown> {
    return await script.run(this.#redis, intakeKeys(this.#prefix, org).declared, args).catch(throwUnavailable);
  }
}
