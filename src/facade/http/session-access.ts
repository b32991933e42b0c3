import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { base32 } from '../../core/ids.ts';
import { earlier } from '../../core/key-rights.ts';
import type { Keyring } from '../../core/sealing.ts';
import { sessionCredentialSealingContext } from '../../core/sealing-contexts.ts';
import { type Session, type SessionStore, sessionLimits } from '../../data/sessions/session-store.ts';
import type { Client } from './access.ts';
import type { Caller } from './caller.ts';
import { KubernetesCallers } from './kubernetes-callers.ts';
import { openCookie, sealCookie } from './session-cookie.ts';

export interface SessionServices {
  sessions: SessionStore;
  keyring: Keyring;
  clock: Clock;
}

/** State of a request by the cookie of a session. */
export interface ShownSession {
  org: string;
  session: Session;
  csrfToken: string;
  /** The API key or token that began it. */
  credential: string;
}

/**
 * Begins a session of a credential that has been accepted for the caller. The session of `sentCookie`, null: the request has none, ends once the new one
 * is stored: its browser no longer has its cookie then. UNAVAILABLE without Redis.
 */
export async function beginSession(
  services: SessionServices,
  { caller, credential, client, sentCookie }: { caller: Caller; credential: string; client: Client; sentCookie: string | null },
): Promise<{ session: Session; csrfToken: string; cookie: string }> {
  const { sessions, keyring, clock } = services;
  const replaced = sentCookie === null ? null : await shownSession(services, sentCookie);
  const org = caller.organization.id;
  const id = `ses_${base32(randomBytes(16))}`;
  const secret = randomBytes(32).toString('base64url');
  const nowMs = clock.now();
  const session: Session = {
    id,
    credentialId: caller.credential.id,
    who: caller.credential.name,
    createdAtMs: nowMs,
    seenAtMs: nowMs,
    endsAtMs: earlier(nowMs + sessionLimits.lastsMs, credentialEndMs(caller, credential)) ?? nowMs,
    ...client,
  };
  const sealedCredential = keyring.seal(credential, sessionCredentialSealingContext(org, id));
  const place = replaced === null ? null : { org: replaced.org, id: replaced.session.id };
  await sessions.create(org, { ...session, secretSha256: sha256(secret), sealedCredential }, place);
  return { session, csrfToken: csrfTokenOf(secret), cookie: sealCookie(keyring, { org, id, secret }) };
}

/** Null: there is no such session any more. UNAVAILABLE without Redis. */
export async function shownSession({ sessions, keyring }: SessionServices, cookie: string): Promise<ShownSession | null> {
  const content = openCookie(keyring, cookie);
  if (content === null) return null;
  const { org, id, secret } = content;
  const stored = await sessions.find(org, id);
  if (stored === null || !isEqual(sha256(secret), stored.secretSha256)) return null;
  const { secretSha256: _, sealedCredential, ...session } = stored;
  try {
    const credential = keyring.open(sealedCredential, sessionCredentialSealingContext(org, id));
    return { org, session, csrfToken: csrfTokenOf(secret), credential };
  } catch (error) {
    // Its encryption key is gone.
    if (isPosthornError(error, 'INTERNAL')) return null;
    throw error;
  }
}

/** FORBIDDEN for a request that may change something and does not have the token: a page of another site may have sent it. */
export function requireCsrfToken(method: string | undefined, sent: string | string[] | undefined, csrfToken: string): void {
  if (method === 'GET' || method === 'HEAD' || (typeof sent === 'string' && isEqual(sent, csrfToken))) return;
  throw new PosthornError('FORBIDDEN', 'Send the csrfToken of GET /api/sessions/current in the header X-Posthorn-CSRF, or an API key.');
}

function csrfTokenOf(secret: string): string {
  return createHmac('sha256', secret).update('posthorn-csrf').digest('base64url');
}

/** When the credential ends, in milliseconds since the epoch; null: never. */
function credentialEndMs({ credential: { ...of } }: Caller, credential: string): number | null {
  if (of.type === 'apiKey') return of.expiresAtMs;
  return KubernetesCallers.endMs(credential);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
