import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, type Script, type ScriptArgument } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { recordId } from '../shard/record-key.ts';
import { fields, integer, list, text } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';

const script = (name: string): Script => new ShardScript(new URL(`./${name}.lua`, import.meta.url));
const scripts = {
  read: script('ends-read'),
  forget: script('ends-forget'),
  due: script('alerts-due'),
  review: script('alerts-review'),
  decide: script('alerts'),
};

/** Entries of the log that are read at a time. */
const endsPerRead = 200;
const readerLeaseMs = 1000;
const routesPerLook = 100;
/** A window: one alert of a type and route at most. */
const alertWindowMs = 300_000;
/** After so long another worker sends what was not confirmed. */
const confirmWithinMs = 5000;

/** Subject of an alert, as a letter in Redis (`alerts.lua`). */
const letters = hashFields.alerts;
export type AlertSubject = keyof typeof letters;
const subjects: ReadonlyMap<string, AlertSubject> = new Map(
  Object.entries(letters).map(([subject, letter]) => [letter, subject as AlertSubject]),
);

/** Subject of one of Posthorn's own events, as a letter in Redis (`../queue/includes/own-events.lua`). */
const { notedQuota: _, ...ownKinds } = hashFields.ownEvents;
export type OwnKind = keyof typeof ownKinds;
const ownKindsByLetter: ReadonlyMap<string, OwnKind> = new Map(Object.entries(ownKinds).map(([kind, letter]) => [letter, kind as OwnKind]));

/** One entry of the log of what ended at targets with alerts. */
export interface EndEntry {
  entry: string;
  routeId: string;
  destinationId: string;
  atMs: number;
  kind: string;
  count: number;
  /** Id of the last message, or `-`. */
  messageId: string;
}

/** One entry of the same log for Posthorn's own events. */
export interface OwnEntry {
  entry: string;
  /** Organization of the target. */
  org: string;
  routeId: string;
  /** The destination, or the subject of an event about the organization itself. */
  destinationId: string;
  atMs: number;
  /** Null: of a later release. */
  kind: OwnKind | null;
  messageId: string | null;
  /** The reason, or the data (JSON) of an event about the organization itself. */
  reason: string;
  /** How many of the kind were left out before it. */
  omitted: number;
  /** Hops of the cause, if that is not a message; else 0. */
  hop: number;
  /** No worker has ever configured the target: whether its source makes own events is unknown. */
  isUnknown: boolean;
}

/** An alert that is to be sent; the same one again until it is confirmed. */
export interface DueAlert {
  subject: AlertSubject;
  /** Unique within the shard that decided. */
  number: string;
  /** Something of the route is broken at the moment: a destination that fails, or an open circuit. */
  isBroken: boolean;
  decidedAtMs: number;
  count: number;
  firstAtMs: number;
  lastAtMs: number;
  destinationId: string;
  messageId: string | null;
}

/** A channel that opens incidents, and the key, sealed, by which they can be closed. */
export interface Pager {
  channelId: string;
  routingKey: string;
}

/** An incident that is to be closed because its channel gets the alerts of the route no more; the same one again until it is confirmed. */
export interface ClosingIncident extends Pager {
  /** Unique within the shard that decided. */
  number: string;
  decidedAtMs: number;
}

export interface AlertDecision {
  /** Organization of the route, as it was known last; '' when it never was. */
  org: string;
  alerts: DueAlert[];
  closing: ClosingIncident[];
  nextMs: number | null;
}

/** Settings of the alerts of a route. `wanted` empty: its state is forgotten, once its incidents are closed. */
export interface AlertRules {
  org: string;
  routeId: string;
  wanted: readonly AlertSubject[];
  failureThreshold: number;
  destinationIds: readonly string[];
  /** The channels with incidents that get its alerts. */
  pagers: readonly Pager[];
}

/**
 * The log of what ended, one per shard, and what is known of the alerts of each route, in the route's home shard. Every call may be
 * sent again. Throws UNAVAILABLE when Redis does not answer.
 */
export class AlertStates {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #windowMs: number;

  constructor({ redis, prefix, windowMs = alertWindowMs }: { redis: RedisClient; prefix: string; windowMs?: number }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#windowMs = windowMs;
  }

  /** The oldest entries of a shard's log; null while another reader is at it. */
  async read(shard: number, reader: string): Promise<{ marker: string; entries: EndEntry[]; own: OwnEntry[] } | null> {
    const [isReader, marker, entries] = list(await this.#run(scripts.read, shard, [reader, readerLeaseMs, endsPerRead]));
    if (integer(isReader) === 0) return null;
    const found = list(entries).map((each) => {
      const [entry, flat] = list(each);
      return { entry: text(entry), found: fields(flat) };
    });
    return {
      marker: text(marker),
      entries: found.filter((each) => !each.found.has(hashFields.ends.organization)).map((each) => endEntry(shard, each)),
      own: found.filter((each) => each.found.has(hashFields.ends.organization)).map((each) => ownEntry(shard, each)),
    };
  }

  async forget(shard: number, entries: readonly Pick<EndEntry, 'entry'>[]): Promise<void> {
    if (entries.length > 0)
      await this.#run(
        scripts.forget,
        shard,
        entries.map(({ entry }) => entry),
      );
  }

  /** Routes of the shard whose alerts are due, and milliseconds until the next ones are. */
  async due(shard: number): Promise<{ routeIds: string[]; nextMs: number | null }> {
    const [routes, next] = list(await this.#run(scripts.due, shard, [routesPerLook]));
    return { routeIds: list(routes).map(text), nextMs: integer(next) < 0 ? null : integer(next) };
  }

  /** Makes those of the routes due, and those with incidents at the channels (`*`: at any), whose incidents may have to be closed. Returns whether there are some. */
  async review(shard: number, routeIds: readonly string[], channelIds: readonly string[]): Promise<boolean> {
    return integer(await this.#run(scripts.review, shard, [namedArgument({ routes: routeIds, channels: channelIds })])) > 0;
  }

  /** Counts entries of a log, confirms what was sent, and returns what is to be sent now. */
  async decide(
    home: number,
    { org, routeId, wanted, failureThreshold, destinationIds, pagers }: AlertRules,
    log: { shard: number; marker: string; entries: readonly EndEntry[] } = { shard: 0, marker: '', entries: [] },
    confirmed: { alerts?: readonly DueAlert[]; closing?: readonly ClosingIncident[] } = {},
  ): Promise<AlertDecision> {
    const { alerts: sent = [], closing: closed = [] } = confirmed;
    const wantedAlerts = namedArgument({
      org,
      route: routeId,
      destinations: destinationIds,
      wanted: wanted.map((subject) => letters[subject]).join(''),
      failureThreshold,
      windowMs: this.#windowMs,
      confirmMs: confirmWithinMs,
      log: { shard: log.shard, marker: log.marker === '' ? '-' : log.marker },
      incidents: incidentsAfter(sent),
      pagers,
      confirmed: [
        ...sent.map(({ subject, number, decidedAtMs }) => ({
          field: letters[subject] + hashFields.alertState.sending,
          number,
          decidedAtMs,
        })),
        ...closed.map(({ channelId, number, decidedAtMs }) => ({
          field: hashFields.alertState.closingOf + channelId,
          number,
          decidedAtMs,
        })),
      ],
      entries: log.entries,
    });
    const [next, alerts, closing, knownOrg] = list(await this.#run(scripts.decide, home, [wantedAlerts]));
    return {
      org: text(knownOrg),
      alerts: list(alerts).flatMap(dueAlert),
      closing: list(closing).map(closingIncident),
      nextMs: integer(next) < 0 ? null : integer(next),
    };
  }

  async #run(what: Script, shard: number, args: readonly ScriptArgument[]): Promise<unknown> {
    return await what.run(this.#redis, shardKeys(this.#prefix, shard).declared, args).catch(throwUnavailable);
  }
}

interface RawEntry {
  entry: string;
  found: ReadonlyMap<string, string>;
}

function ownEntry(shard: number, { entry, found }: RawEntry): OwnEntry {
  const message = found.get(hashFields.ends.message) ?? '-';
  return {
    entry,
    org: found.get(hashFields.ends.organization) ?? '',
    routeId: found.get(hashFields.ends.ownRoute) ?? '',
    destinationId: found.get(hashFields.ends.destination) ?? '',
    atMs: Number(found.get(hashFields.ends.atMs)),
    kind: ownKindsByLetter.get(found.get(hashFields.ends.kind) ?? '') ?? null,
    messageId: message === '-' ? null : recordId('msg_', shard, message),
    reason: found.get(hashFields.ends.details) ?? '',
    omitted: Number(found.get(hashFields.ends.omitted)),
    hop: Number(found.get(hashFields.ends.hops) ?? '0'),
    isUnknown: found.has(hashFields.ends.isUnknown),
  };
}

function endEntry(shard: number, { entry, found }: RawEntry): EndEntry {
  const message = found.get(hashFields.ends.message) ?? '-';
  return {
    entry,
    routeId: found.get(hashFields.ends.route) ?? '',
    destinationId: found.get(hashFields.ends.destination) ?? '',
    atMs: Number(found.get(hashFields.ends.atMs)),
    kind: found.get(hashFields.ends.kind) ?? '',
    count: Number(found.get(hashFields.ends.count)),
    messageId: message === '-' ? message : recordId('msg_', shard, message),
  };
}

/** Effect of the newest of these alerts on the incidents of the route; successes have none. */
function incidentsAfter(alerts: readonly DueAlert[]): 'opened' | 'closed' | null {
  const newest = alerts
    .filter(({ subject }) => subject !== 'succeeded')
    .sort((a, b) => a.decidedAtMs - b.decidedAtMs || Number(a.number) - Number(b.number))
    .at(-1);
  return newest === undefined ? null : newest.isBroken ? 'opened' : 'closed';
}

function closingIncident(reply: unknown): ClosingIncident {
  const [channelId = '', number = '', decided, routingKey = ''] = list(reply).map(text);
  return { channelId, number, decidedAtMs: Number(decided), routingKey };
}

function dueAlert(reply: unknown): DueAlert[] {
  const [letter = '', number = '', broken, decided, count, first, last, destinationId = '', messageId = '-'] = list(reply).map(text);
  const subject = subjects.get(letter);
  if (subject === undefined) return [];
  return [
    {
      subject,
      number,
      isBroken: broken === '1',
      decidedAtMs: Number(decided),
      count: Number(count),
      firstAtMs: Number(first),
      lastAtMs: Number(last),
      destinationId,
      messageId: messageId === '-' ? null : messageId,
    },
  ];
}
