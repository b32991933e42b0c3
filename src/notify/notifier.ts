import { withJitter } from '../core/backoff.ts';
import type { Clock } from '../core/clock.ts';
import { isPosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { OwnEvent } from '../core/own-event.ts';
import type { RouteRecord } from '../core/records.ts';
import type { AlertRules, AlertStates, AlertSubject, EndEntry, OwnEntry, Pager } from '../data/alerts/alert-states.ts';
import type { RedisMessageReader } from '../data/history/message-reader.ts';
import type { MessageAcceptor } from '../data/shard/messages.ts';
import { type AlertSources, alertEvent, alertShard, closingEvent, pagersOf } from './alert-event.ts';
import { type LogPosition, ownEvents } from './own-event-payload.ts';

/** Ends meanwhile are processed together. */
const gatherMs = 100;
const retryMs = 2000;
/** While another worker reads the log. */
const otherReaderMs = 1000;
/** For all own events of an organization that are read at once: alerts wait meanwhile. */
const publishDeadlineMs = 2000;

export interface NotifierOptions extends AlertSources {
  messages: Pick<RedisMessageReader, 'delivery' | 'events'>;
  states: AlertStates;
  acceptor: MessageAcceptor;
  /** Stores one of Posthorn's own events, once. Rejects with UNAVAILABLE, QUEUE_FULL or REQUEST_TIMEOUT. */
  acceptOwn: (event: OwnEvent, signal: AbortSignal) => Promise<void>;
  shards: number;
  /** Unique in the installation. */
  reader: string;
  clock: Clock;
  logger: Logger;
}

/**
 * Turns what ended at targets with alerts into alerts, and requested occurrences into Posthorn's own events, and queues them as
 * messages. Any number of workers may do so at the same time: every
 * step may be repeated, and what a dead worker leaves behind another finds at its next check of the shard.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  readonly #looks = new Map<number, { atMs: number; cancel: () => void }>();
  readonly #underWay = new Map<number, Promise<void>>();
  readonly #changed = { routes: new Set<string>(), channels: new Set<string>() };
  readonly #unsubscribe: () => void;
  #reviewing: Promise<void> | null = null;
  #cancelReview: (() => void) | null = null;
  #isStopped = false;

  constructor(options: NotifierOptions) {
    this.#options = options;
    this.#unsubscribe = options.registry.onChange((changeKey) => this.#note(changeKey));
  }

  /** Signals that there may be work in a shard. */
  wake(shard: number): void {
    this.#readIn(shard, gatherMs);
  }

  /** Ends after what is under way; others do what is left. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#cancelReview?.();
    for (const { cancel } of this.#looks.values()) cancel();
    await Promise.all([...this.#underWay.values(), this.#reviewing]);
  }

  /** An incident ends with the alerts of its route, and with its channel. */
  #note(changeKey: string): void {
    const [kind, id = '*'] = changeKey.split(':');
    if (kind === 'route') this.#changed.routes.add(id);
    else if (kind === 'notificationChannel' || kind === '*') this.#changed.channels.add(id);
    else return;
    this.#reviewIn(gatherMs);
  }

  #reviewIn(ms: number): void {
    if (this.#isStopped || this.#reviewing !== null || this.#cancelReview !== null) return;
    this.#cancelReview = this.#options.clock.after(ms, () => {
      this.#cancelReview = null;
      this.#reviewing = this.#review().then((waitMs) => {
        this.#reviewing = null;
        if (this.#changed.routes.size + this.#changed.channels.size > 0) this.#reviewIn(waitMs);
      });
    });
  }

  /** Returns the delay until the rest may be processed. */
  async #review(): Promise<number> {
    const { states, shards, logger } = this.#options;
    const [routes, channels] = [[...this.#changed.routes], [...this.#changed.channels]];
    this.#changed.routes.clear();
    this.#changed.channels.clear();
    try {
      const byHome = Map.groupBy(routes, (routeId) => alertShard(routeId, shards));
      for (let shard = 0; shard < shards; shard++) {
        const here = byHome.get(shard) ?? [];
        if (here.length + channels.length > 0 && (await states.review(shard, here, channels))) this.#readIn(shard, gatherMs);
      }
      return gatherMs;
    } catch (error) {
      logger.debug({ err: error }, 'incidents could not be checked; retrying');
      for (const routeId of routes) this.#changed.routes.add(routeId);
      for (const channelId of channels) this.#changed.channels.add(channelId);
      return withJitter(retryMs);
    }
  }

  #readIn(shard: number, ms: number): void {
    const { clock } = this.#options;
    const atMs = clock.now() + ms;
    const planned = this.#looks.get(shard);
    if (this.#isStopped || (planned !== undefined && planned.atMs <= atMs)) return;
    planned?.cancel();
    const cancel = clock.after(ms, () => {
      this.#looks.delete(shard);
      // One check at a time: later arrivals are found by the next.
      if (this.#underWay.has(shard)) this.#readIn(shard, gatherMs);
      else this.#underWay.set(shard, this.#read(shard));
    });
    this.#looks.set(shard, { atMs, cancel });
  }

  async #read(shard: number): Promise<void> {
    const { states, logger } = this.#options;
    try {
      await this.#readLog(shard);
      const { routeIds, nextMs } = await states.due(shard);
      for (const routeId of routeIds) await this.#decide(routeId);
      if (routeIds.length > 0) this.#readIn(shard, gatherMs);
      else if (nextMs !== null) this.#readIn(shard, Math.max(gatherMs, nextMs));
    } catch (error) {
      logger.debug({ err: error, shard }, 'alerts could not be checked; retrying');
      this.#readIn(shard, withJitter(retryMs));
    } finally {
      this.#underWay.delete(shard);
    }
  }

  async #readLog(shard: number): Promise<void> {
    const { states, reader } = this.#options;
    while (!this.#isStopped) {
      const log = await states.read(shard, reader);
      if (log === null) this.#readIn(shard, withJitter(otherReaderMs));
      if (log === null || log.entries.length + log.own.length === 0) return;
      const byRoute = Map.groupBy(log.entries, ({ routeId }) => routeId);
      for (const [routeId, entries] of byRoute) await this.#decide(routeId, { shard, marker: log.marker, entries });
      const left = await this.#publish({ shard, marker: log.marker }, log.own);
      if (this.#isStopped) return;
      await states.forget(shard, [...log.entries, ...log.own.filter((entry) => !left.has(entry))]);
    }
  }

  /** Returns those that are to be sent after the next read. Rejects without Redis only. */
  async #publish(place: LogPosition, entries: readonly OwnEntry[]): Promise<Set<OwnEntry>> {
    const byOrganization = Map.groupBy(entries, ({ org }) => org);
    const left = await Promise.all([...byOrganization].map(([organization, own]) => this.#publishOf(organization, place, own)));
    return new Set(left.flat());
  }

  /**
   * Returns those that did not fit the time. When not even the first can be sent in the time, or Redis is full, all are dropped: alerts, and other
   * organizations, would wait for them.
   */
  async #publishOf(organization: string, place: LogPosition, entries: readonly OwnEntry[]): Promise<OwnEntry[]> {
    const { acceptOwn, logger } = this.#options;
    const deadline = AbortSignal.timeout(publishDeadlineMs);
    let sent = 0;
    try {
      for (const entry of entries) {
        if (this.#isStopped) return [];
        deadline.throwIfAborted();
        for (const event of await ownEvents(this.#options, place, entry)) await acceptOwn(event, deadline);
        sent += 1;
      }
    } catch (error) {
      if (isPosthornError(error, 'UNAVAILABLE')) throw error;
      if (deadline.aborted && sent > 0) return entries.slice(sent);
      const level = deadline.aborted || isPosthornError(error, 'QUEUE_FULL', 'REQUEST_TIMEOUT') ? 'warn' : 'error';
      logger[level]({ err: error, organization, events: entries.length - sent }, "Posthorn's own events were dropped");
    }
    return [];
  }

  /** Rejects without Redis only: a defect must not hold up the alerts of other routes. */
  async #decide(routeId: string, log?: { shard: number; marker: string; entries: readonly EndEntry[] }): Promise<void> {
    const { registry, states, acceptor, shards, logger } = this.#options;
    try {
      const route = await registry.getOfAny('route', routeId);
      const rules = rulesOf(routeId, route, await pagersOf(registry, route));
      const home = alertShard(routeId, shards);
      const decided = await states.decide(home, rules, log);
      let { nextMs } = decided;
      const { org, alerts, closing } = decided;
      if (alerts.length + closing.length > 0) {
        for (const due of alerts) {
          const event = route === null ? null : await alertEvent(this.#options, route, due, home);
          if (event !== null) await acceptor.accept(event);
        }
        for (const incident of closing) await acceptor.accept(closingEvent(org, routeId, incident, home));
        ({ nextMs } = await states.decide(home, rules, undefined, { alerts, closing }));
      }
      if (nextMs !== null) this.#readIn(home, Math.max(gatherMs, nextMs));
    } catch (error) {
      if (isPosthornError(error, 'UNAVAILABLE')) throw error;
      logger.error({ err: error, routeId }, 'the alerts of a route failed with an internal error');
    }
  }
}

function rulesOf(routeId: string, route: RouteRecord | null, pagers: readonly Pager[]): AlertRules {
  const { notifications } = route ?? {};
  if (route === null || notifications === undefined)
    return { org: route?.org ?? '', routeId, wanted: [], failureThreshold: 1, destinationIds: [], pagers };
  const { onFailure, onSuccess, onRecovery, failureThreshold } = notifications;
  const wanted: AlertSubject[] = [
    ...(onFailure ? (['failed', 'opened'] as const) : []),
    ...(onSuccess ? (['succeeded'] as const) : []),
    ...(onRecovery ? (['recovered', 'closed'] as const) : []),
  ];
  const destinationIds = [...route.destinations, ...route.failover.destinations].map(({ id }) => id);
  return { org: route.org, routeId, wanted, failureThreshold, destinationIds, pagers };
}
