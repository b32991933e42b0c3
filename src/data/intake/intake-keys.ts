const bucketMs = 21_600_000;
/** The longest window of a source, and the bucket in which it ends. */
const oldestBuckets = 168 / 6 + 2;

/**
 * Keys that count an organization's events and detect duplicates, in one slot; `includes/intake.lua` documents them.
 * `RedisMessagePurger` removes them with the organization.
 */
export interface IntakeKeys {
  /** Keys that every script declares. */
  readonly declared: readonly [string, string];
  readonly quota: string;
  readonly reserved: string;
  /** `../history/includes/intents.lua` */
  readonly intents: string;
  readonly outcomes: readonly [string, string];
  /** `../replays/includes/replays.lua` */
  readonly replays: string;
  readonly runningReplays: string;
  readonly endedReplays: string;
  /** Messages of a replay that have not been seen end, and the worker that carries it on. */
  openOfReplay(identity: string): string;
  replayLease(identity: string): string;
  /** The hashes of all dedup keys that can exist at a time. */
  marks(nowMs: number): string[][];
}

export function intakeKeys(prefix: string, org: string): IntakeKeys {
  const base = `${prefix}{intake:${org}}:`;
  return {
    declared: [`${base}quota`, `${base}~`],
    quota: `${base}quota`,
    reserved: `${base}reserved`,
    intents: `${base}intents`,
    outcomes: [`${base}outcomes`, `${base}outcomes-by`],
    replays: `${base}replays`,
    runningReplays: `${base}replays-running`,
    endedReplays: `${base}replays-ended`,
    openOfReplay: (identity) => `${base}replay:${identity}`,
    replayLease: (identity) => `${base}replay-lease:${identity}`,
    marks: (nowMs) => {
      const newest = Math.floor(nowMs / bucketMs);
      return Array.from({ length: oldestBuckets }, (_, i) =>
        Array.from({ length: 256 }, (__, byte) => `${base}m:${newest - i}:${byte.toString(16).padStart(2, '0')}`),
      );
    },
  };
}

/** A sorted set of the organizations in which something was begun (`message-intents.ts`), by when. */
export function unfinishedIntentsKey(prefix: string): string {
  return `${prefix}{intents}:unfinished`;
}
