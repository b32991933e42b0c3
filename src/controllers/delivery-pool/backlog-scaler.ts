import type { Clock } from '../../core/clock.ts';

/** What waits for workers. */
export interface Backlog {
  messages: number;
  /** For how long the oldest message that is ready has not been taken. */
  oldestAgeSeconds: number;
}

export interface ScaleQuestion {
  /** Desired pods, and how many of them are ready. */
  current: number;
  ready: number;
  min: number;
  max: number;
  targetBacklogPerPod: number;
  /** Null: it is not known now. */
  backlog: Backlog | null;
}

/** A backlog that is off by no more than this share changes nothing. */
const tolerance = 0.1;
/** A message that is ready is taken within milliseconds while there are workers enough. */
const oldSeconds = 30;
/** New pods need a while before they show. */
const upIntervalMs = 15_000;
const upByAgeIntervalMs = 60_000;
/** Fewer pods only after this time in which no more were needed, and then at most half of them at once. */
const downWindowMs = 300_000;
const downIntervalMs = 60_000;
/** Needs that are closer together are one. */
const sampleMs = 5000;

interface History {
  sinceMs: number;
  needs: { atMs: number; pods: number }[];
  changedAtMs: number;
}

/**
 * Desired pods of a pool: so many that each has its target of the backlog, and one more while messages get old although all pods
 * work. Up at once, at most twofold; down slowly. Forgets with the process: a new one goes down only after its own window.
 */
export class BacklogScaler {
  readonly #clock: Clock;
  readonly #histories = new Map<string, History>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `uid` is that of the pool. */
  decide(uid: string, { current, ready, min, max, targetBacklogPerPod, backlog }: ScaleQuestion): number {
    const nowMs = this.#clock.now();
    const history = this.#historyOf(uid, nowMs);
    const within = (pods: number): number => Math.min(max, Math.max(min, pods));
    if (backlog === null || within(current) !== current) return this.#changed(history, current, within(current), nowMs);
    const byBacklog = Math.ceil(backlog.messages / targetBacklogPerPod);
    const isOld = backlog.oldestAgeSeconds >= oldSeconds && ready >= current;
    const isClose = byBacklog > current && backlog.messages <= current * targetBacklogPerPod * (1 + tolerance);
    const needed = within(Math.max(isClose ? current : byBacklog, isOld ? current + 1 : 0));
    note(history, needed, nowMs);
    if (needed > current) {
      const intervalMs = byBacklog > current ? upIntervalMs : upByAgeIntervalMs;
      if (nowMs - history.changedAtMs < intervalMs) return current;
      return this.#changed(history, current, Math.min(needed, Math.max(current * 2, current + 4)), nowMs);
    }
    const lately = Math.max(...history.needs.map(({ pods }) => pods));
    if (lately >= current || nowMs - history.sinceMs < downWindowMs || nowMs - history.changedAtMs < downIntervalMs) return current;
    return this.#changed(history, current, Math.max(lately, Math.floor(current / 2)), nowMs);
  }

  forget(uid: string): void {
    this.#histories.delete(uid);
  }

  #historyOf(uid: string, nowMs: number): History {
    const known = this.#histories.get(uid);
    if (known !== undefined) {
      known.needs = known.needs.filter(({ atMs }) => nowMs - atMs <= downWindowMs);
      return known;
    }
    const made: History = { sinceMs: nowMs, needs: [], changedAtMs: Number.NEGATIVE_INFINITY };
    this.#histories.set(uid, made);
    return made;
  }

  #changed(history: History, current: number, pods: number, nowMs: number): number {
    if (pods !== current) history.changedAtMs = nowMs;
    return pods;
  }
}

function note({ needs }: History, pods: number, nowMs: number): void {
  const last = needs.at(-1);
  if (last === undefined || nowMs - last.atMs >= sampleMs) needs.push({ atMs: nowMs, pods });
  else last.pods = Math.max(last.pods, pods);
}
