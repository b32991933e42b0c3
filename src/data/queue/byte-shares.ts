import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { redisUnavailable, throwUnavailable } from '../../redis/unavailable.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { fields, integer, list, text } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';

/** The unfinished bytes of one shard: of its accounts, and of all. */
export interface ShardBytes {
  total: number;
  accounts: ReadonlyMap<string, number>;
}

/** The bytes of unfinished events by account, and how many accounts are refused. */
export interface ByteUsage {
  byAccount: ReadonlyMap<string, number>;
  over: number;
}

export interface ByteDivision {
  /** Accounts that are refused at all shards of the server. */
  over: string[];
  /** Accounts of which no details of attempts are kept. */
  lean: string[];
  /** By shard, in their order: up to how many unfinished bytes it takes events without a new division. */
  leases: number[];
}

/** Part of the memory limit of a server for all unfinished events on it: above that, accounts over their share are refused. */
const unfinishedShare = 0.4;
/** Part of that, and of the share of an account, below which no account, or this one no more, is refused: 35 % of the limit. */
const relieved = 7 / 8;
/** The same where details of attempts are no more kept: they go before an event is refused. */
const leanFrom = 0.6;
/** So far all shards together may go beyond their leases between two divisions, as a part of all unfinished bytes. */
const leastRoom = 1 / 32;
/** Maximum wait of a read for all shards. A later one is on a server that is down, and the others must not wait for it. */
const answerWithinMs = 300;
/** Minimum time before a refused account is read again. */
const refreshEveryMs = 1000;

const readScript = new ShardScript(new URL('./unfinished-read.lua', import.meta.url));
const shareScript = new ShardScript(new URL('./unfinished-share.lua', import.meta.url));

/**
 * Divides the bytes that unfinished events may have on a server among the accounts that have any. While memory is free, nobody is refused. Without
 * it, an account is refused that has its share, until it has less or memory is free again. The share is never less than an equal part; what accounts that
 * have less than that leave belongs to the others (max-min), so that one with a single event does not halve the share of another. `refused`: the accounts
 * that are refused now. From 60 % on, the details of attempts of accounts that have as much of their share go (`lean`).
 */
export function divideBytes(limitBytes: number, shards: readonly ShardBytes[], refused: ReadonlySet<string>): ByteDivision {
  const max = limitBytes * unfinishedShare;
  const total = shards.reduce((sum, shard) => sum + shard.total, 0);
  const accounts = new Map<string, number>();
  for (const shard of shards) for (const [account, held] of shard.accounts) accounts.set(account, (accounts.get(account) ?? 0) + held);
  const equal = max / Math.max(1, accounts.size);
  const share = total < max ? Number.POSITIVE_INFINITY : shareOf(max, accounts);
  const relievedShare = total < max * relieved ? Number.POSITIVE_INFINITY : shareOf(max * relieved, accounts);
  const isOver = (account: string, held: number): boolean =>
    (held > equal && held >= share) || (refused.has(account) && held > relievedShare);
  const leanShare = total < max * leanFrom ? Number.POSITIVE_INFINITY : shareOf(max * leanFrom, accounts);
  const lean = [...accounts].filter(([, held]) => held >= leanShare).map(([account]) => account);
  const over = [...accounts].filter(([account, held]) => isOver(account, held)).map(([account]) => account);
  const room = Math.max(max - total, max * leastRoom) / shards.length;
  return { over, lean, leases: shards.map((shard) => Math.floor(shard.total + room)) };
}

/** Up to how much each may have, so that all together have `bytes`: those that have less leave the rest to the others. */
function shareOf(bytes: number, accounts: ReadonlyMap<string, number>): number {
  let left = bytes;
  let others = accounts.size;
  for (const held of [...accounts.values()].sort((one, other) => one - other)) {
    if (held * others >= left) return left / others;
    left -= held;
    others--;
  }
  return Number.POSITIVE_INFINITY;
}

interface Options {
  redis: RedisClient;
  prefix: string;
  clock: Clock;
  /** How many there are. */
  shards: () => number;
  /** Limit if Redis has no maxmemory. */
  memoryLimitBytes?: number | undefined;
}

interface SeenShard extends ShardBytes {
  shard: number;
  server: string;
  limitBytes: number;
  over: readonly string[];
}

/** Shares the memory of Redis between accounts: reads the unfinished bytes of each, and sends the limits to the shards. */
export class ByteShares {
  readonly #options: Options;
  #underWay: Promise<void> | null = null;
  #refreshedAtMs = Number.NEGATIVE_INFINITY;
  /** Shards that did not answer in time, and have not answered since. */
  readonly #silent = new Set<number>();
  /** Shards with a read under way. */
  readonly #asking = new Set<number>();

  constructor(options: Options) {
    this.#options = options;
  }

  /**
   * Reads all shards, and `shard` in any case; joins a read that is under way. Shards that have not answered after 300 ms, when others have, are left out
   * and not waited for again until they have answered. Rejects with UNAVAILABLE when none answers.
   */
  refresh(shard: number): Promise<void> {
    this.#underWay ??= this.#refresh(shard).finally(() => {
      this.#underWay = null;
    });
    return this.#underWay;
  }

  /** Whether the last look is so long ago that it does not prove any more that an account is over its share. */
  get isStale(): boolean {
    return this.#options.clock.now() - this.#refreshedAtMs >= refreshEveryMs;
  }

  /** Rejects with QUEUE_FULL when the account has more than its share at one of the shards, as it is now; with UNAVAILABLE. */
  async refuseOver(account: string, shards: readonly number[]): Promise<void> {
    const isOver = async (): Promise<boolean> =>
      (await Promise.all(shards.map((shard) => this.#overAt(shard)))).some((over) => over.includes(account));
    if (!(await isOver())) return;
    // The account's events may have ended since the refusal. Ending an event triggers no look; only accept does.
    if (this.isStale) {
      await this.refresh(shards[0] ?? 0);
      if (!(await isOver())) return;
    }
    throw overShare();
  }

  async #overAt(shard: number): Promise<string[]> {
    const { redis, prefix } = this.#options;
    const over = await redis.hget(shardKeys(prefix, shard).declared[0], hashFields.control.accountsOver).catch(throwUnavailable);
    return (over ?? '').split(' ');
  }

  /** Reads the bytes of all shards, as they are now. Rejects with UNAVAILABLE. */
  async figures(): Promise<ByteUsage> {
    const first = await this.#figures();
    if (first.over === 0) return first;
    await this.refresh(0);
    return this.#figures();
  }

  async #figures(): Promise<ByteUsage> {
    const byAccount = new Map<string, number>();
    const over = new Set<string>();
    for (const seen of await Promise.all(this.#shards(0).map((shard) => this.#read(shard)))) {
      for (const [account, held] of seen.accounts) byAccount.set(account, (byAccount.get(account) ?? 0) + held);
      for (const account of seen.over) over.add(account);
    }
    return { byAccount, over: over.size };
  }

  async #refresh(asking: number): Promise<void> {
    const asked = this.#askable(asking);
    const seen = await this.#inTime(asked.map((shard) => this.#read(shard)));
    const answered = seen.flatMap((each) => (each?.status === 'fulfilled' ? [each.value] : []));
    for (const [i, shard] of asked.entries()) if (seen[i] === undefined) this.#silent.add(shard);
    const failed = seen.find((each) => each?.status === 'rejected');
    if (answered.length === 0) throw failed?.reason;
    const servers = Map.groupBy(answered, ({ server }) => server);
    await this.#inTime([...servers.values()].flatMap((shards) => this.#share(shards)));
    this.#refreshedAtMs = this.#options.clock.now();
  }

  /** All but the silent ones, which are read separately; all, when all of them are silent. */
  #askable(asking: number): number[] {
    const all = this.#shards(asking);
    const asked = all.filter((shard) => !this.#silent.has(shard));
    if (asked.length === 0) return all;
    for (const shard of all) if (this.#silent.has(shard) && !this.#asking.has(shard)) void this.#askSilent(shard);
    return asked;
  }

  async #askSilent(shard: number): Promise<void> {
    this.#asking.add(shard);
    try {
      await this.#read(shard);
      this.#silent.delete(shard);
    } catch {
      // The next read retries it.
    } finally {
      this.#asking.delete(shard);
    }
  }

  /** Result of each; undefined: nothing yet, when one has been fulfilled and the time is over. */
  async #inTime<T>(promises: readonly Promise<T>[]): Promise<(PromiseSettledResult<T> | undefined)[]> {
    const settled: (PromiseSettledResult<T> | undefined)[] = promises.map(() => undefined);
    const all = Promise.all(
      promises.map(async (promise, i) => {
        const [result] = await Promise.allSettled([promise]);
        settled[i] = result;
      }),
    );
    const over = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(answerWithinMs, over.resolve);
    const late = async (): Promise<void> => {
      await over.promise;
      await Promise.any(promises).catch(() => undefined);
      // A reply that arrived while this process was stopped is in time.
      await new Promise(setImmediate);
    };
    await Promise.race([all, late()]).finally(cancel);
    return [...settled];
  }

  #shards(asking: number): number[] {
    return Array.from({ length: Math.max(this.#options.shards(), asking + 1) }, (_, shard) => shard);
  }

  async #read(shard: number): Promise<SeenShard> {
    const { redis, prefix, memoryLimitBytes } = this.#options;
    try {
      const reply = await readScript.run(redis, shardKeys(prefix, shard).declared, [memoryLimitBytes ?? '']);
      const [server, limit, over, stored] = list(reply);
      const accounts = new Map([...fields(stored)].map(([account, held]) => [account, Number(held)]));
      const total = accounts.get(allAccounts) ?? 0;
      accounts.delete(allAccounts);
      return { shard, server: text(server), limitBytes: integer(limit), over: text(over).split(' ').filter(Boolean), total, accounts };
    } catch (error) {
      throw redisUnavailable(error);
    }
  }

  #share(shards: readonly SeenShard[]): Promise<unknown>[] {
    const { redis, prefix } = this.#options;
    const say = (shard: number, lease: number | '-', over: readonly string[], lean: string): Promise<unknown> =>
      shareScript.run(redis, shardKeys(prefix, shard).declared, [lease, over.join(' '), lean]);
    const limitBytes = shards[0]?.limitBytes ?? 0;
    if (limitBytes === 0) return shards.map(({ shard }) => say(shard, '-', [], ''));
    const { over, lean, leases } = divideBytes(limitBytes, shards, new Set(shards.flatMap((each) => each.over)));
    return shards.map(({ shard, total }, i) => {
      // Nothing triggers a read when the bytes become fewer.
      const leanAbove = Math.floor(total * relieved);
      return say(shard, leases[i] ?? 0, over, lean.length === 0 ? '' : [leanAbove, ...lean].join(' '));
    });
  }
}

/** The field of `ub` for all of them. */
const allAccounts = '*';

/** Deliveries need a while to free memory. */
const overRetrySeconds = 10;

/** The error where an account that has more than its share would get more. */
export function overShare(): PosthornError {
  return new PosthornError(
    'QUEUE_FULL',
    'The events of the organization that wait for their delivery take more than its share of memory: no more are taken until some of them have ended',
    { retryAfterSeconds: overRetrySeconds },
  );
}
