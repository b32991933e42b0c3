/**
 * Layout of a shard. All keys begin with `<prefix>{sN}:`; ids are in them without prefix and shard number (25 characters), those of
 * another shard with it (27). Fields of hashes have their names in `hash-fields.ts`.
 *
 * - `ctl` hash of the shard itself
 * - `e:<event>` string (`event-text.ts`), `x:<event>` ids of its messages when there are several, `refs` hash of the number of those
 *   here, `far` hash of other shards that have a copy
 * - `ue` hash of unfinished events, `ub` of their bytes by account, `fb` of the bytes of all others (`../queue/includes/unfinished-state.lua`); `early` hash of how far the
 *   history of accounts was walked to free memory (`prune-account.lua`)
 * - `c:<token>:<number>` string: a chunk of a payload above 1 MiB (`includes/chunks.lua`)
 * - `an:<event>` string: the response to a duplicate of the event; it expires
 * - `out` stream, the outbox (`../queue/includes/outbox.lua`); `seen:<message>` the last move that brought it here
 * - `y:<event>` hash of outputs of transforms by route (`event-output.ts`)
 * - `m:<pack>` hash and field `~` of `y:<event>`: results of the routes whose filter an event has not met; `i:pk:<org>` their index (`includes/packed.lua`)
 * - `m:<message>` hash, `a:<message>` hash of attempts that do not fit into it; `ad` hash event → bytes of those that
 *   may go (`../queue/includes/attempt-details.lua`)
 * - `tn:<org>` hash `<route> <destination>` → target number; `t:<target>` hash (`includes/target.lua`)
 * - `w:<lane>` work stream of message ids, group `g`, consumer `c`; a lane is `<target>` or, for retries, `<target>r`
 * - `ready` sorted set of organizations, `ready:<org>` of targets, by start tag; `o:<org>` hash of clock and finish tag
 * - `pools`, `pool@<pool>`, `ready@<pool>`, `bell@<pool>`, `slow@<pool>`: of further pools of workers (`includes/pools.lua`)
 * - `waiting` sorted set of limiters by wake time (`!<target>`: a circuit), `wait:<limiter>` its targets; `l:<limiter>` throttle,
 *   `rate:<limiter>` GCRA, `lease:<limiter>` leases by expiry, `used:<limiter>` what targets that share it had (`../queue/includes/shared-limiter.lua`)
 * - `broken` set of targets whose circuit is not closed, `probe:<target>` leases of its probes, `circuits` stream of transitions
 * - `ends` stream of what ended at targets with alerts (`../queue/includes/ends.lua`), `ends-of` how many an organization has added to a long one, `ends-reader` who reads it; `al:<route>`, `alr:<org>`, `alerts`,
 *   `incidents` what is known of alerts (`alerts.lua`)
 * - `slow` and `slow:<account>` handles of attempts to slow targets by deadline (`../queue/includes/slow.lua`)
 * - `due` sorted set `<target> <message>` by due time, `retries` hash of how many each target has there, `scheduled` hash of how many of these are scheduled;
 *   `exp` sorted set `<target> <message>` of deadlines (`../queue/includes/expiry.lua`); of both the indexes `due:<account>` and `exp:<account>`, and the turns
 *   `turns:due` and `turns:exp` (`../queue/includes/time-shares.lua`; `ctl` has in `indexed:due` and `indexed:exp` how far they are built); `paused` set of targets
 * - `held` sorted set `<lane>/<entry>/<worker>` by deadline, `held:<worker>` hash `<lane>/<entry>` → message
 * - `i:<org>`, `i:<route>`, `i:<destination>` indexes of messages, `i:dead:<org>` and `i:fail:<route>` of dead letters, `i:bad:<org>` and
 *   `i:batch:<org>` of what has failed (`../queue/includes/failures-index.lua`), `i:ev:<org>` and
 *   `i:<source>` of events, `i:cp:<org>` of copies of events (`../queue/includes/index.lua`); `fin` and `dead` streams of what ended, which pruning walks;
 *   `fin:<org>`, `arc`, `ar:<org>`, `ah`, `az`, `arw` of organizations with an archive (`../queue/includes/archive.lua`)
 * - `b:<batch>` string of the members of a batch, `m:<batch>` its hash, `bs:<target>` set of batches, `ended` list of those that have
 *   ended and whose members have not (`includes/batch.lua`)
 * - `k:<org>` hash of counters (`includes/count.lua`), `st:<org>:<period>` hashes of the analytics (`../queue/includes/statistics.lua`), and of webhooks
 *   `st:<org>:<period>:f`, `un:<org>` (`../queue/includes/webhook-statistics.lua`) and `ra:<target>` newest attempts (`../queue/includes/failures.lua`);
 *   `q:<org>` of dead letters by reason and destination, `ms:<org>` of webhook messages by status (`../queue/includes/status-counts.lua`); `bell` list, the doorbell
 * - `watch` string, the epoch of those who watch, which expires; `feed` stream of transitions, which is there while `watch` is, `feed-old` rows that have left it,
 *   `feed-moved` and `feed-lost` hashes (`../feed/includes/feed.lua`)
 */
export interface ShardKeys {
  readonly shard: number;
  /** Keys that every script declares; see `includes/shard.lua`. */
  readonly declared: readonly [string, string];
  readonly doorbell: string;
  counters(org: string): string;
  statistics(org: string, period: string): string;
  /** The set of an organization's tallies, and one of them. */
  tallies(org: string): string;
  tally(org: string, name: string): string;
  failing(org: string, period: string): string;
  /** Samples of what waits; of the organization '' how many there were (`../queue/sample-backlogs.lua`). */
  backlogs(org: string, period: string): string;
  unfinished(org: string): string;
  targetNumbers(org: string): string;
  target(number: string): string;
  newestAttempts(target: string): string;
  readonly held: string;
  readonly unfinishedEvents: string;
  readonly finishedBytes: string;
  readonly earlyWalks: string;
  deadLetters(org: string): string;
  statusCounts(org: string): string;
  attempts(messageKey: string): string;
  message(messageKey: string): string;
  event(eventKey: string): string;
  /** Outputs of transforms. */
  outputs(eventKey: string): string;
  answer(eventKey: string): string;
  chunk(token: string, number: number): string;
  batch(batchKey: string): string;
  unsentOfBatch(batchKey: string): string;
  readonly circuits: string;
  readonly feed: string;
  readonly archives: string;
  readonly archiveFailures: string;
  archive(org: string): string;
}

/** Prefix of every key of a shard. */
export function shardBase(prefix: string, shard: number): string {
  return `${prefix}{s${shard}}:`;
}

export function shardKeys(prefix: string, shard: number): ShardKeys {
  const base = shardBase(prefix, shard);
  return {
    shard,
    declared: [`${base}ctl`, `${base}~`],
    doorbell: `${base}bell`,
    circuits: `${base}circuits`,
    feed: `${base}feed`,
    archives: `${base}arc`,
    archiveFailures: `${base}arw`,
    archive: (org) => `${base}ar:${org}`,
    counters: (org) => `${base}k:${org}`,
    statistics: (org, period) => `${base}st:${org}:${period}`,
    backlogs: (org, period) => `${base}st:${org}:${period}:b`,
    tallies: (org) => `${base}st:${org}:t`,
    tally: (org, name) => `${base}st:${org}:t${name}`,
    failing: (org, period) => `${base}st:${org}:${period}:f`,
    unfinished: (org) => `${base}un:${org}`,
    targetNumbers: (org) => `${base}tn:${org}`,
    target: (number) => `${base}t:${number}`,
    newestAttempts: (target) => `${base}ra:${target}`,
    held: `${base}held`,
    unfinishedEvents: `${base}ue`,
    finishedBytes: `${base}fb`,
    earlyWalks: `${base}early`,
    statusCounts: (org) => `${base}ms:${org}`,
    deadLetters: (org) => `${base}q:${org}`,
    attempts: (messageKey) => `${base}a:${messageKey}`,
    message: (messageKey) => `${base}m:${messageKey}`,
    event: (eventKey) => `${base}e:${eventKey}`,
    outputs: (eventKey) => `${base}y:${eventKey}`,
    answer: (eventKey) => `${base}an:${eventKey}`,
    chunk: (token, number) => `${base}c:${token}:${number}`,
    batch: (batchKey) => `${base}b:${batchKey}`,
    unsentOfBatch: (batchKey) => `${base}bu:${batchKey}`,
  };
}
