import { z } from 'zod';
import { parsePlainJson } from '../../core/plain-json.ts';
import { type SignatureFailure, signatureFailureReasons } from '../../core/providers/signature-failure.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';

/** How long a failure is kept after the last one of its kind. */
export const signatureFailuresKeptMs = 24 * 3_600_000;
/** Most entries of a source: failures of the same reason, from the same address, are one. */
export const maxSignatureFailures = 20;
/** Most sources of an organization: beyond it the one that failed longest ago is forgotten. */
export const maxFailingSources = 100;

/** Requests to a source whose signatures failed for the same reason. Times are milliseconds since the epoch. */
export interface SignatureFailureEntry extends SignatureFailure {
  /** Whether the source refused them; otherwise it took them as events whose signature is not valid. */
  isRefused: boolean;
  /** Their sender. */
  address: string;
  /** User agent of the last one; null: it sent none. */
  userAgent: string | null;
  requests: number;
  firstAtMs: number;
  lastAtMs: number;
}

export interface SourceSignatureFailures {
  /** Number of all requests since `sinceMs`, with those that are no entry (any more). */
  requests: number;
  /** When the first one came; null: there is none. */
  sinceMs: number | null;
  /** The newest first. */
  entries: SignatureFailureEntry[];
}

/** The keys of an organization, in one slot. `RedisMessagePurger` removes them with the organization; what is kept of a deleted source expires. */
export function signatureFailureKeys(
  prefix: string,
  org: string,
): { sources: string; totals: string; entriesOf(sourceId: string): string } {
  const base = `${prefix}{sigfail:${org}}:`;
  return { sources: `${base}sources`, totals: `${base}totals`, entriesOf: (sourceId) => `${base}of:${sourceId}` };
}

const description = z.tuple([z.enum(signatureFailureReasons), z.string(), z.union([z.literal(0), z.literal(1)]), z.string()]);

/** Common fields of the failures of one entry. */
export function describeFailure({ reason, header = '', isRefused, address }: Omit<SignatureFailureEntry, 'requests'>): string {
  return JSON.stringify([reason, header, isRefused ? 1 : 0, address] satisfies z.output<typeof description>);
}

/** Why requests to sources are refused. */
export class SignatureFailures {
  readonly #redis: RedisClient;
  readonly #prefix: string;

  constructor({ redis, prefix }: { redis: RedisClient; prefix: string }) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** Failures of a source from `sinceMs` on. UNAVAILABLE without Redis. */
  async of(org: string, sourceId: string, sinceMs: number): Promise<SourceSignatureFailures> {
    const keys = signatureFailureKeys(this.#prefix, org);
    const [texts, total] = await Promise.all([
      this.#redis.lrange(keys.entriesOf(sourceId), 0, -1),
      this.#redis.hget(keys.totals, sourceId),
    ]).catch(throwUnavailable);
    const entries = texts
      .flatMap((text) => entryOf(text) ?? [])
      .filter(({ lastAtMs }) => lastAtMs >= sinceMs)
      .reverse();
    const [, since, requests] = /^(\d+) (\d+)$/.exec(total ?? '') ?? [];
    if (entries.length === 0 || since === undefined) return { requests: 0, sinceMs: null, entries: [] };
    return { requests: Number(requests), sinceMs: Number(since), entries };
  }

  /** Removes those of an organization. */
  async purge(org: string): Promise<void> {
    const keys = signatureFailureKeys(this.#prefix, org);
    const sources = await this.#redis.zrange(keys.sources, '0', '-1').catch(throwUnavailable);
    const entries = sources.map((id) => keys.entriesOf(id));
    await this.#redis.unlink(keys.sources, keys.totals, ...entries).catch(throwUnavailable);
  }
}

function entryOf(text: string): SignatureFailureEntry | null {
  const [, first, last, requests, behind, userAgent, described = ''] = /^(\d+) (\d+) (\d+) (\S+) (\S+) (.*)$/.exec(text) ?? [];
  if (behind === undefined || userAgent === undefined) return null;
  const [reason, header, isRefused, address] = description.parse(parsePlainJson(described));
  return {
    reason,
    ...(header !== '' && { header }),
    ...(behind !== '-' && { secondsBehind: Number(behind) }),
    isRefused: isRefused === 1,
    address,
    userAgent: userAgent === '-' ? null : decodeURIComponent(userAgent),
    requests: Number(requests),
    firstAtMs: Number(first),
    lastAtMs: Number(last),
  };
}
