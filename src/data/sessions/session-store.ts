import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';

/** Session without its credential. Times are milliseconds since the epoch. */
export interface Session {
  id: string;
  /** Id of the API key or of the user. */
  credentialId: string;
  /** Name of the key or the user. */
  who: string;
  createdAtMs: number;
  /** Last use, exact to a minute. */
  seenAtMs: number;
  /** Latest end, whatever its use; not after the end of its credential. */
  endsAtMs: number;
  /** Address of the client that logged in. */
  address: string;
  userAgent: string;
}

export interface StoredSession extends Session {
  /** Hex SHA-256 of the secret in the cookie. */
  secretSha256: string;
  sealedCredential: string;
}

export const sessionLimits = {
  perOrganization: 200,
  idleMs: 12 * 3_600_000,
  lastsMs: 7 * 86_400_000,
};

const seenEveryMs = 60_000;
const createScript = new Script(new URL('./session-create.lua', import.meta.url));
const seenScript = new Script(new URL('./session-seen.lua', import.meta.url));
const listScript = new Script(new URL('./session-list.lua', import.meta.url));
const purgeScript = new Script(new URL('./session-purge.lua', import.meta.url));

/** Returns when the session ends if it is not used before. */
export function sessionEndMs({ seenAtMs, endsAtMs }: Session): number {
  return Math.min(seenAtMs + sessionLimits.idleMs, endsAtMs);
}

/** Key of the sorted set of an organization's sessions: id → last use. The key of each session's hash has the suffix `:<id>`; all have one slot. */
function sessionsKey(prefix: string, org: string): string {
  return `${prefix}{sessions:${org}}`;
}

/** Removes all sessions of an organization. */
export async function purgeSessions({ redis, prefix }: { redis: RedisClient; prefix: string }, org: string): Promise<void> {
  await purgeScript.run(redis, [sessionsKey(prefix, org)], []);
}

const fieldNames = ['credentialId', 'who', 'created', 'seen', 'ends', 'address', 'userAgent'] as const;
const fields = z
  .object({
    credentialId: z.string(),
    who: z.string(),
    created: z.coerce.number(),
    seen: z.coerce.number(),
    ends: z.coerce.number(),
    address: z.string(),
    userAgent: z.string(),
  })
  .transform(({ created, seen, ends, ...rest }) => ({ ...rest, createdAtMs: created, seenAtMs: seen, endsAtMs: ends }));
const listReply = z.array(z.array(z.string()));
const secrets = z.object({ secret: z.string(), credential: z.string() });

/** Sessions of browsers, by organization. Every method throws UNAVAILABLE when Redis does not answer. */
export class SessionStore {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #clock: Clock;

  constructor({ redis, prefix, clock }: { redis: RedisClient; prefix: string; clock: Clock }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#clock = clock;
  }

  /**
   * Stores a session. Above `sessionLimits.perOrganization` sessions it ends the least recently used one of the credential that has the most. `replaced`: a session
   * that ends once the new one is stored; null: none.
   */
  async create(org: string, session: StoredSession, replaced: { org: string; id: string } | null): Promise<void> {
    const { id, secretSha256, sealedCredential, createdAtMs, seenAtMs, endsAtMs, credentialId, who, address, userAgent } = session;
    const stored = {
      secret: secretSha256,
      credential: sealedCredential,
      credentialId,
      who,
      created: createdAtMs,
      seen: seenAtMs,
      ends: endsAtMs,
      address,
      userAgent,
    };
    const { perOrganization, lastsMs } = sessionLimits;
    const times = { nowMs: this.#clock.now(), idleMs: this.#leftMs(session), maxAgeMs: lastsMs };
    const replacedHere = replaced?.org === org ? replaced.id : null;
    const named = Object.entries(stored).flatMap(([name, value]) => [name, String(value)]);
    const created = namedArgument({ id, ...times, maxSessions: perOrganization, replaced: replacedHere, fields: named });
    await createScript.run(this.#redis, this.#keys(org, id), [created]).catch(throwUnavailable);
    // The new session is valid even if the replaced one cannot be ended: that one stays listed, and expires.
    if (replaced !== null && replaced.org !== org) await this.end(replaced.org, replaced.id).catch(() => {});
  }

  /** Returns the session; null: the organization has none with this id, or it has ended. */
  async find(org: string, id: string): Promise<StoredSession | null> {
    const stored = await this.#redis.hgetall(`${sessionsKey(this.#prefix, org)}:${id}`).catch(throwUnavailable);
    if (stored['secret'] === undefined) return null;
    const { secret, credential } = secrets.parse(stored);
    const session = { id, ...fields.parse(stored), secretSha256: secret, sealedCredential: credential };
    return this.#hasEnded(session) ? null : session;
  }

  /** Records a use, unless one was recorded within a minute. */
  async seen(org: string, session: Session): Promise<void> {
    const nowMs = this.#clock.now();
    if (nowMs - session.seenAtMs < seenEveryMs) return;
    const leftMs = this.#leftMs({ ...session, seenAtMs: nowMs });
    await seenScript.run(this.#redis, this.#keys(org, session.id), [session.id, nowMs, leftMs]).catch(throwUnavailable);
  }

  /** Lists the sessions of an organization, newest first. */
  async list(org: string): Promise<Session[]> {
    const reply = listReply.parse(
      await listScript.run(this.#redis, [sessionsKey(this.#prefix, org)], [...fieldNames]).catch(throwUnavailable),
    );
    return reply
      .map(([id = '', ...values]) => ({ id, ...fields.parse(Object.fromEntries(fieldNames.map((name, i) => [name, values[i]]))) }))
      .filter((session) => !this.#hasEnded(session))
      .sort((one, other) => other.createdAtMs - one.createdAtMs || (one.id < other.id ? -1 : 1));
  }

  /** Ends the session if it has not ended yet. */
  async end(org: string, id: string): Promise<void> {
    const [sessions = '', hash = ''] = this.#keys(org, id);
    await this.#redis.multi().unlink(hash).zrem(sessions, id).exec().catch(throwUnavailable);
  }

  #keys(org: string, id: string): string[] {
    const sessions = sessionsKey(this.#prefix, org);
    return [sessions, `${sessions}:${id}`];
  }

  #leftMs(session: Session): number {
    return Math.max(1, sessionEndMs(session) - this.#clock.now());
  }

  #hasEnded(session: Session): boolean {
    return sessionEndMs(session) <= this.#clock.now();
  }
}
