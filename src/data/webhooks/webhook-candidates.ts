import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument } from '../../redis/script.ts';
import { integer, list, text } from '../shard/script-reply.ts';
import { idParts } from './webhook-kinds.ts';
import { chunksOf } from './webhook-pages.ts';
import { applicationRow, endpointRow, recordParts, subscriptionRow } from './webhook-rows.ts';
import { WebhookScripts } from './webhook-scripts.ts';
import type { WebhookApplication, WebhookRateLimits, WebhookSubscription } from './webhooks.ts';

/** A subscription that is enabled, with endpoint and application: what an event of its type is judged by, and where its message goes. */
export interface WebhookCandidate
  extends Pick<
    WebhookSubscription,
    'endpointId' | 'applicationId' | 'filterExpression' | 'labelFilters' | 'labelFilterMode' | 'transformId' | 'lastFilterError'
  > {
  /** In the list that is walked; candidates that are made later have higher ones. */
  place: number;
  /** Number of the subscription; those of an event type are numbered in the order of their places. */
  number: number;
  /** Number of the application. */
  application: number;
  subscriptionId: string;
  url: string;
  /** Attempts after the first one; null: as many as in the schedule of the installation. */
  retries: number | null;
  /** Null: messages to the endpoint do not expire by its setting. */
  expiresAfterSeconds: number | null;
  shard: number;
  applicationLimits: WebhookRateLimits;
}

export interface CandidatePage {
  candidates: WebhookCandidate[];
  /** Subscriptions that would be candidates if only their application were not disabled. */
  dormant: { number: number; application: number }[];
  /** The place to go on from; null: that was all. */
  next: number | null;
  /** Higher than all places that there are. */
  end: number;
}

/** Candidates of an event type at one version. */
export interface CandidatesState {
  /** The version that `WebhookCandidates.version` returns. */
  version: string;
  /** Changes since that version; null: more than are stored. */
  changesSince(version: string): { subscriptions: number[]; applications: number[] } | null;
}

/** Limits of one script call. */
export const maxPerRead = 100;
/** Candidates that one script reads in about 1 ms: in a long walk others are served in between. */
export const candidatesPerRead = 25;

/**
 * Subscriptions that an event may match, in the order in which they were made. Those that are disabled, or below something disabled or deleted,
 * are none. Rejects with UNAVAILABLE when Redis does not answer.
 */
export class WebhookCandidates {
  readonly #scripts: WebhookScripts;
  readonly #versions = new Map<string, Promise<string>>();

  constructor(options: { redis: RedisClient; prefix: string }) {
    this.#scripts = new WebhookScripts(options);
  }

  /**
   * The same text for as long as the candidates of the event type are the same. One read answers everybody who asks before it is sent, at the
   * end of the tick: it sees every write that was answered before they asked.
   */
  version(org: string, eventTypeId: string): Promise<string> {
    const key = `${org} ${eventTypeId}`;
    const joined = this.#versions.get(key);
    if (joined !== undefined) return joined;
    const reading = new Promise<void>((resolve) => void setImmediate(resolve)).then(async () => {
      this.#versions.delete(key);
      return (await this.#scripts.versions(org, eventTypeId)).join('/');
    });
    this.#versions.set(key, reading);
    return reading;
  }

  async state(org: string, eventTypeId: string): Promise<CandidatesState> {
    const { versions, changes } = await this.#scripts.versionsAndChanges(org, eventTypeId);
    return {
      version: versions.join('/'),
      changesSince: (version) => {
        const [applications, subscriptions] = version.split('/').map((each, i) => numbersAfter(each, versions[i] ?? '', changes[i] ?? ''));
        return applications == null || subscriptions == null ? null : { subscriptions, applications };
      },
    };
  }

  /** Reads the candidates of all applications: at most `count` subscriptions (and 100) from the place `from` on, the first time 0. */
  ofEventType(org: string, eventTypeId: string, from: number, count: number): Promise<CandidatePage> {
    return this.#read(org, { eventType: eventTypeId, from, max: Math.min(count, maxPerRead) });
  }

  /** Reads the candidates of one application: those of at most `count` of its endpoints (and 100). Places are those of the endpoints. */
  ofApplication(org: string, eventTypeId: string, applicationId: string, from: number, count: number): Promise<CandidatePage> {
    const application = idParts('application', applicationId);
    return this.#read(org, { eventType: eventTypeId, from, max: Math.min(count, maxPerRead), application });
  }

  /** Reads the candidates of at most 100 endpoints, in their order; endpoints that are not there have none. */
  async ofEndpoints(org: string, eventTypeId: string, endpointIds: readonly string[]): Promise<WebhookCandidate[]> {
    const endpoints = endpointIds.map((id) => idParts('endpoint', id));
    return (await this.#read(org, { eventType: eventTypeId, endpoints })).candidates;
  }

  /** Those of at most 100 subscriptions to the event type, by their numbers. */
  ofNumbers(org: string, eventTypeId: string, numbers: readonly number[]): Promise<CandidatePage> {
    return this.#read(org, { eventType: eventTypeId, subscriptions: numbers });
  }

  async #read(org: string, asked: Readonly<Record<string, unknown>>): Promise<CandidatePage> {
    const [end, next, applications, rows] = list(await this.#scripts.run('candidates', org, [namedArgument(asked)]));
    const known = new Map<string, { application: WebhookApplication; part: string }>();
    for (const each of chunksOf(list(applications), 2)) {
      const [number = '', record = ''] = each.map(text);
      known.set(number, { application: applicationRow(org, [number, record]).object, part: recordParts(record).part });
    }
    const dormant: CandidatePage['dormant'] = [];
    const candidates = chunksOf(list(rows), 6).flatMap((row) => {
      const [place, number = '', record = '', endpoint = '', endpointRecord = '', applicationNumber = ''] = row.map(text);
      const above = known.get(applicationNumber);
      if (above === undefined) return [];
      const { object: target } = endpointRow(org, [endpoint, endpointRecord, applicationNumber, above.part]);
      if (target.isDisabled) return [];
      const endpointPart = recordParts(endpointRecord).part;
      const below = [number, record, endpoint, endpointPart, applicationNumber, above.part, ''];
      const { object: subscription } = subscriptionRow(org, below);
      if (!subscription.isEnabled) return [];
      const numbers = { number: Number(number), application: Number(applicationNumber) };
      if (above.application.isDisabled) {
        dormant.push(numbers);
        return [];
      }
      return [
        {
          place: Number(place),
          ...numbers,
          subscriptionId: subscription.id,
          endpointId: target.id,
          applicationId: target.applicationId,
          url: target.url,
          retries: target.retryDelaysSeconds?.length ?? null,
          expiresAfterSeconds: target.expiresAfterSeconds,
          shard: above.application.shard,
          applicationLimits: above.application.rateLimits,
          filterExpression: subscription.filterExpression,
          labelFilters: subscription.labelFilters,
          labelFilterMode: subscription.labelFilterMode,
          transformId: subscription.transformId,
          lastFilterError: subscription.lastFilterError,
        },
      ];
    });
    return { candidates, dormant, next: text(next) === '' ? null : integer(next), end: integer(end) };
  }
}

/** From a journal ` <version>:<number> …` the numbers that come after the version; null when not all changes since then are in it. */
function numbersAfter(version: string, current: string, journal: string): number[] | null {
  if (version === current) return [];
  const at = version === '' ? -1 : journal.lastIndexOf(` ${version}:`);
  // A process of another release may change versions alone.
  if (at < 0 || !journal.includes(` ${current}:`, at)) return null;
  const entries = journal
    .slice(at + 1)
    .split(' ')
    .slice(1);
  return [...new Set(entries.map((entry) => Number(entry.slice(entry.indexOf(':') + 1))))];
}
