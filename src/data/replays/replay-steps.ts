import { isPosthornError } from '../../core/errors.ts';
import type { ReplayRecord } from '../../core/replay-record.ts';
import { monthOf } from '../intake/intake.ts';
import { EndedMessages, maxOpenOf } from './ended-messages.ts';
import { PagesAhead } from './pages-ahead.ts';
import type { KnownReplay, RedisReplayRuns, ReplayChange } from './redis-replay-runs.ts';
import { endReplay, type ReplayEndOptions, recordReplayEnd, tooManyFailed } from './replay-end.ts';
import type { ReplayFeed } from './replay-feed.ts';
import { isObstacle, newIdOf, type OtherDestination, ReplayQueueing, type ReplayQueueingOptions, type Waiting } from './replay-queueing.ts';
import type { ReplaySkip } from './replay-run.ts';
import { newReplayState, type ReplayState } from './replay-state.ts';
import { waitFor } from './replay-waits.ts';

/** Maximum number of planned originals. The plan ends there and reports that there may be more. */
const maxPlanned = 100_000;
const maxCountedTargets = 100;
/** A wait is reported after this time: a target may be full for a moment. */
const fullForMs = 5000;
/** A replay whose object is older does not begin, because the record of one that has ended is kept for this time. */
const rememberedMs = 90 * 86_400_000;
/** Wait after a step that has only checked for ended messages. */
const pauseMs = 100;
const endLeaseMs = 10_000;

export interface ReplayStepsOptions extends ReplayQueueingOptions, Omit<ReplayEndOptions, 'runs'> {
  runs: RedisReplayRuns;
  feed: ReplayFeed;
  /** Interval of checks for ended messages; default 200. */
  lookEveryMs?: number;
}

/** Limits of a step. */
export interface StepOptions {
  /** Messages to queue. */
  most: number;
  /** How many the organization may queue in a month; null: any number. */
  monthlyMessages: number | null;
  /** The destination that gets all of them instead; null: it does not exist. Absent: each goes to its own target. */
  elsewhere?: OtherDestination | null;
}

/** Result of an advance. `ended`: there is nothing more to do for the replay, ever. `idle`: nothing can be done now. */
export interface Advance {
  outcome: 'ended' | 'progress' | 'idle';
  queued: number;
  /** Time until the next step can make progress. Absent: none after progress; otherwise unknown. */
  pauseMs?: number;
}

const idle: Advance = { outcome: 'idle', queued: 0 };

/**
 * Runs replays in steps that another worker may repeat. Each step records its originals before it replays them, under ids derived from the replay and the
 * originals. The same write counts them against the monthly quota.
 */
export class ReplaySteps {
  readonly #options: ReplayStepsOptions;
  readonly #queueing: ReplayQueueing;
  readonly #endedMessages: EndedMessages;
  readonly #pages: PagesAhead;
  /** The version that this process has written last, by identity. */
  readonly #written = new Map<string, number>();

  constructor(options: ReplayStepsOptions) {
    this.#options = options;
    this.#queueing = new ReplayQueueing(options);
    this.#endedMessages = new EndedMessages(options);
    this.#pages = new PagesAhead(options);
  }

  /** Runs one step. After a rejection with UNAVAILABLE the step may be incomplete; the next call completes it. */
  async advance(record: ReplayRecord, options: StepOptions): Promise<Advance> {
    const { runs, feed, clock } = this.#options;
    const { org, identity } = record;
    const read = await runs.read(org, identity);
    // A replay whose record has expired may have run.
    if (read === null && clock.now() - record.createdAtMs > rememberedMs) return this.#ended(identity);
    // A replay that has only waited for a slot has not run for an earlier object.
    const isRun = read !== null && (read.state.uid === record.uid || read.state.isAdmitted || read.state.endedAtMs !== null);
    const known = isRun ? read : { version: read?.version ?? 0, state: newReplayState(record, clock.now()), open: 0 };
    const { state } = known;
    if (state.isToTell) return await this.#over(record, state, await recordReplayEnd(this.#options, record, known));
    if (state.endedAtMs !== null) return this.#ended(identity);
    if (record.isCancelled || state.uid !== record.uid) return await this.#end(record, known, { phase: 'Cancelled' });
    // Publishes changes of another process, suspensions, and rows that came too soon after another one.
    if (isRun) await feed.publish(record, state);
    if (!state.isAdmitted) return record.isSuspended ? idle : await this.#enter(record, known);
    try {
      if (state.phase === 'Planning') return record.isSuspended ? idle : await this.#plan(record, known);
      return await this.#run(record, known, { ...options, most: record.isSuspended ? 0 : options.most });
    } catch (error) {
      if (!isPosthornError(error, 'INVALID_QUERY', 'VALIDATION_FAILED')) throw error;
      return await this.#end(record, known, { phase: 'Failed', failure: { reason: 'InvalidFilter', message: error.message } });
    }
  }

  /**
   * Ends the running replays of an organization whose objects were deleted and which no other worker has leased. `isThere`: whether an object has this id and
   * this identity.
   */
  async endGone(org: string, worker: string, isThere: (id: string, identity: string) => Promise<boolean>): Promise<void> {
    const { runs } = this.#options;
    for (const identity of await runs.running(org)) {
      const known = await runs.read(org, identity);
      if (known === null || (await isThere(known.state.id, identity))) continue;
      if (!(await runs.lease(org, identity, worker, endLeaseMs))) continue;
      const ended = { org, identity };
      if (known.state.isToTell) await this.#over(ended, known.state, await recordReplayEnd(this.#options, ended, known));
      else await this.#end({ ...ended, what: known.state.what }, known, { phase: 'Cancelled' });
    }
  }

  async #enter(record: ReplayRecord, known: KnownReplay): Promise<Advance> {
    const { version, state } = known;
    const { runs } = this.#options;
    const entered: ReplayState = { ...state, isAdmitted: true, waiting: null };
    const reply = await runs.save(record.org, record.identity, { version, state: entered, place: 'enter' });
    if (reply !== 'many') return { outcome: 'progress', queued: 0 };
    return await this.#wait(record, known, { reason: 'TooManyReplays', message: 'Ten other replays of the organization are running.' });
  }

  async #plan(record: ReplayRecord, { version, state }: KnownReplay): Promise<Advance> {
    const { candidates, clock } = this.#options;
    const page = await candidates.page(record, state.beganAtMs, { cursor: state.cursor });
    const targets = new Set(state.targets);
    for (const { routeId, destinationId } of page.candidates)
      if (targets.size < maxCountedTargets) targets.add(`${routeId} ${destinationId}`);
    const found = state.plan.candidates + page.candidates.length;
    const isOver = page.next === null || found >= maxPlanned;
    const oldestMs = Math.min(state.plan.oldestMs ?? Number.POSITIVE_INFINITY, ...page.candidates.map(({ createdAtMs }) => createdAtMs));
    const planned: ReplayState = {
      ...state,
      plan: {
        candidates: found,
        isEstimate: page.next !== null && isOver,
        bytes: state.plan.bytes + (await candidates.bytes(page.candidates)),
        targets: targets.size,
        oldestMs: Number.isFinite(oldestMs) ? oldestMs : null,
      },
      cursor: isOver ? null : page.next,
      targets: isOver ? [] : [...targets],
    };
    if (isOver && record.isDryRun) return await this.#end(record, { version, state: planned }, { phase: 'Succeeded' });
    const phase = isOver ? 'Running' : 'Planning';
    return await this.#save(record, { version, state: { ...planned, phase, progressAtMs: clock.now() } }, 0);
  }

  async #run(record: ReplayRecord, known: KnownReplay, options: StepOptions): Promise<Advance> {
    const { version } = known;
    if (known.state.step !== null && this.#written.get(record.identity) !== version) return await this.#reconcile(record, known);
    const { state, ended, held, lookInMs } = await this.#endedMessages.see(record, known);
    const open = known.open - ended.length;
    const hasFailed = tooManyFailed(record, state);
    if (hasFailed !== null) return await this.#end(record, { version, state }, { phase: 'Failed', failure: hasFailed, ended });
    if (state.queuedAtMs !== null && open === 0) return await this.#end(record, { version, state }, { phase: 'Succeeded', ended });
    const maximum = maxOpenOf(record);
    const most = Math.min(options.most, maximum - open);
    if (most > 0 && state.queuedAtMs === null) {
      const step = { ...options, ended, most };
      return state.step === null
        ? await this.#note(record, { version, state, open }, step)
        : await this.#queue(record, { version, state, open }, step);
    }
    const isFull = state.queuedAtMs === null && options.most > 0 && this.#options.clock.now() - state.progressAtMs >= fullForMs;
    if (isFull) {
      const message = `${maximum} of its messages are queued and have not ended.`;
      return await this.#wait(record, { version, state, open }, { reason: 'InFlightLimit', message }, ended);
    }
    if (state.queuedAtMs !== null && held != null) return await this.#wait(record, { version, state, open }, held, ended);
    const waiting = state.queuedAtMs !== null && held === null ? null : state.waiting;
    if (ended.length === 0 && waiting === state.waiting) return lookInMs === undefined ? idle : { ...idle, pauseMs: lookInMs };
    return { ...(await this.#save(record, { version, state: { ...state, waiting }, ended }, 0)), pauseMs };
  }

  /** Records the next originals, and counts them against the monthly quota. */
  async #note(
    record: ReplayRecord,
    { version, state, open }: KnownReplay,
    { ended, ...options }: StepOptions & { ended: string[] },
  ): Promise<Advance> {
    const { runs, clock } = this.#options;
    const { most, monthlyMessages } = options;
    // One at a time while the monthly quota is used up.
    const limit = state.waiting?.reason === 'QuotaReached' ? 1 : most;
    const page = await this.#pages.next(record, state.beganAtMs, { cursor: state.cursor, limit });
    const ids = page.candidates.map(({ id }) => id);
    const month = monthOf(clock.now());
    const isLast = page.next === null;
    // Events are stored when they are replayed, which may be long after the replay began.
    const idTimeMs = record.what === 'events' ? clock.now() : state.beganAtMs;
    const recorded: ReplayState = {
      ...state,
      cursor: page.next,
      step: ids.length === 0 ? null : { ids, idTimeMs, month: monthlyMessages === null ? null : month, isLast },
      ...(ids.length === 0 && isLast && { queuedAtMs: clock.now(), waiting: null }),
    };
    const reply = await runs.save(record.org, record.identity, {
      version,
      state: recorded,
      ...(monthlyMessages !== null && { month: { month, messages: ids.length, limit: monthlyMessages, isLastTry: limit === 1 } }),
      ended,
    });
    if (reply === 'quota' && limit > 1) return await this.#note(record, { version, state, open }, { ...options, most: 1, ended });
    if (reply === 'quota')
      return await this.#wait(
        record,
        { version, state, open },
        { reason: 'QuotaReached', message: 'The organization has queued as many messages as it may in this month (UTC).' },
        ended,
      );
    if (reply === 'saved') this.#written.set(record.identity, version + 1);
    if (reply !== 'saved' || ids.length === 0) return { outcome: 'progress', queued: 0 };
    this.#pages.begin(record, state.beganAtMs, { cursor: page.next, limit });
    return await this.#queue(record, { version: version + 1, state: recorded, open }, { ...options, ended: [] });
  }

  /** Replays recorded originals, and records their outcomes. */
  async #queue(
    record: ReplayRecord,
    { version, state, open }: KnownReplay,
    { ended, most, elsewhere }: StepOptions & { ended: string[] },
  ): Promise<Advance> {
    const { clock, candidates } = this.#options;
    const { step } = state;
    if (step === null) return { outcome: 'progress', queued: 0 };
    const now = step.ids.slice(0, most);
    const { outcomes, obstacle: noRoom } = await this.#queueing.replay(record, step.idTimeMs, now, elsewhere);
    if (noRoom !== null && outcomes.size === 0) return await this.#wait(record, { version, state, open }, noRoom, ended);
    const queued = now.filter((id) => outcomes.get(id) === 'done').map((id) => newIdOf(record, step.idTimeMs, id));
    const skipped = { ...state.skipped };
    const unpaid = now.filter((id) => outcomes.get(id) === 'payload').length;
    const gone = now.filter((id) => outcomes.get(id) === 'gone').length;
    addSkipped(skipped, 'payload_not_found', unpaid);
    const ordered = now.filter((id) => outcomes.get(id) === 'ordered').length;
    addSkipped(skipped, 'target_not_found', gone);
    addSkipped(skipped, 'target_ordered', ordered);
    const held = now.filter((id) => !outcomes.has(id) || isObstacle(outcomes.get(id)));
    const left = [...held, ...step.ids.slice(now.length)];
    const isDone = left.length === 0;
    const obstacle = held.map((id) => outcomes.get(id)).find(isObstacle);
    const hasMoved = held.length < now.length;
    const nowMs = clock.now();
    const next: ReplayState = {
      ...state,
      queued: state.queued + queued.length,
      skipped,
      step: isDone ? null : { ...step, ids: left },
      queuedAtMs: isDone && step.isLast ? nowMs : null,
      progressAtMs: hasMoved || isDone ? nowMs : state.progressAtMs,
    };
    const month = givenBack(step, unpaid + gone + ordered);
    if (obstacle !== undefined && !hasMoved) {
      const isLasting = obstacle !== 'target_full' || nowMs - state.progressAtMs >= fullForMs;
      const [first] = held;
      const target = first === undefined ? null : await candidates.candidate(record, first);
      if (isLasting) return await this.#wait(record, { version, state: next, open }, waitFor(obstacle, target), ended);
      if (ended.length === 0) return idle;
    }
    const advance = await this.#save(
      record,
      { version, state: hasMoved || isDone ? { ...next, waiting: null } : next, ...month, queued, ended },
      queued.length,
    );
    return hasMoved || isDone ? advance : { ...advance, outcome: 'idle' };
  }

  /** Counts first what another process has replayed of a step that it recorded. */
  async #reconcile(record: ReplayRecord, { version, state }: KnownReplay): Promise<Advance> {
    const { step } = state;
    if (step === null) return idle;
    const made = await this.#madeOf(record, state);
    const queued = [...made.values()];
    const left = step.ids.filter((id) => !made.has(id));
    const isDone = left.length === 0;
    const next: ReplayState = {
      ...state,
      queued: state.queued + queued.length,
      step: isDone ? null : { ...step, ids: left },
      ...(isDone && step.isLast && { queuedAtMs: this.#options.clock.now(), waiting: null }),
    };
    return await this.#save(record, { version, state: next, queued }, 0);
  }

  /** Returns the existing messages of the step by their originals. */
  async #madeOf(record: Pick<ReplayRecord, 'org' | 'identity' | 'what'>, { step }: ReplayState): Promise<Map<string, string>> {
    if (step === null) return new Map();
    const newIds = step.ids.map((id) => [id, newIdOf(record, step.idTimeMs, id)] as const);
    const views = await this.#options.candidates.views(
      record,
      newIds.map(([, newId]) => newId),
    );
    return new Map(newIds.filter(([, newId]) => views.has(newId)));
  }

  /** Reports why nothing can be queued; writes the reason if it has changed. */
  async #wait(
    record: ReplayRecord,
    { version, state }: KnownReplay,
    { reason, message }: Waiting,
    ended: readonly string[] = [],
  ): Promise<Advance> {
    const isKnown = state.waiting?.reason === reason && state.waiting.message === message;
    if (isKnown && ended.length === 0) return idle;
    const waiting = isKnown ? state.waiting : { reason, message, sinceMs: this.#options.clock.now() };
    await this.#save(record, { version, state: { ...state, waiting }, ended }, 0);
    return idle;
  }

  async #save(record: ReplayRecord, change: ReplayChange, queued: number): Promise<Advance> {
    const { runs, feed } = this.#options;
    if ((await runs.save(record.org, record.identity, change)) !== 'saved') return { outcome: 'progress', queued: 0 };
    this.#written.set(record.identity, change.version + 1);
    await feed.publish(record, change.state);
    return { outcome: 'progress', queued };
  }

  /** Returns to the monthly quota what the last record counted and was not replayed. */
  async #end(
    record: Pick<ReplayRecord, 'org' | 'identity' | 'what'>,
    { version, state }: Pick<KnownReplay, 'version' | 'state'>,
    { phase, failure = null, ended = [] }: Pick<ReplayState, 'phase'> & Partial<Pick<ReplayState, 'failure'>> & { ended?: string[] },
  ): Promise<Advance> {
    const { clock } = this.#options;
    const { step } = state;
    const made = await this.#madeOf(record, state);
    const over: ReplayState = {
      ...state,
      phase,
      failure,
      waiting: null,
      queued: state.queued + made.size,
      step: null,
      targets: [],
      cursor: null,
      endedAtMs: clock.now(),
    };
    const month = step === null ? {} : givenBack(step, step.ids.length - made.size);
    return await this.#over(record, over, await endReplay(this.#options, record, { version, state: over, ...month, ended }));
  }

  async #over(record: Pick<ReplayRecord, 'org' | 'identity'>, state: ReplayState, isOver: boolean): Promise<Advance> {
    if (!isOver) return { outcome: 'progress', queued: 0 };
    await this.#options.feed.publish(record, state);
    return this.#ended(record.identity);
  }

  #ended(identity: string): Advance {
    this.#options.feed.forget(identity);
    this.#endedMessages.forget(identity);
    this.#pages.forget(identity);
    this.#written.delete(identity);
    return { outcome: 'ended', queued: 0 };
  }
}

function givenBack({ month }: NonNullable<ReplayState['step']>, messages: number): Pick<ReplayChange, 'month'> {
  return month === null || messages === 0 ? {} : { month: { month, messages: -messages } };
}

function addSkipped(skipped: Partial<Record<ReplaySkip, number>>, reason: ReplaySkip, count: number): void {
  if (count > 0) skipped[reason] = (skipped[reason] ?? 0) + count;
}
