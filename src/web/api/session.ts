import { basePath } from './base.ts';
import { type Answer, ApiError, call, setCsrfToken } from './client.ts';

export type Session = Answer<'GET /sessions/current'>;

/** Held by the page that changes the cookie, among all of this browser: none of them forgets what another has just been given. */
const cookieLock = 'posthorn-session-cookie';
/** Increases at each sign-in or sign-out: earlier responses do not describe the new session. */
let turn = 0;

/** Null: nobody is signed in. Throws ApiError for whatever else the API refuses. */
export async function currentSession(signal?: AbortSignal): Promise<Session | null> {
  const askedIn = turn;
  const session = (await askedSession(signal)) ?? (await sessionWithoutEndedOne(signal));
  if (askedIn !== turn) return await currentSession(signal);
  setCsrfToken(session?.csrfToken ?? null);
  return session;
}

/** The cookie of a session that has ended is in the way of the requests that this machine may send without one. */
async function sessionWithoutEndedOne(signal: AbortSignal | undefined): Promise<Session | null> {
  return await withCookieLock(async () => {
    const session = await askedSession(signal);
    if (session !== null) return session;
    await unless401(call('DELETE /sessions/current', {}, { organization: null, signal }));
    return await askedSession(signal);
  });
}

/** A page that is not read by HTTPS or from a loopback name has no locks, and its browser keeps no cookie of a session. */
async function withCookieLock<Result>(work: () => Promise<Result>): Promise<Result> {
  return navigator.locks === undefined ? await work() : await navigator.locks.request(cookieLock, work);
}

function askedSession(signal: AbortSignal | undefined): Promise<Session | null> {
  return unless401(call('GET /sessions/current', {}, { organization: null, signal }));
}

async function unless401<Result>(answer: Promise<Result>): Promise<Result | null> {
  try {
    return await answer;
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.status === 401) return null;
    throw thrown;
  }
}

/** With an API key or a Kubernetes token; `organization` is that of a token. Throws ApiError. */
export async function signIn(credential: string, organization: string | undefined): Promise<void> {
  const session = await withCookieLock(() => call('POST /sessions', { body: { credential, organization } }, { organization: null }));
  turn += 1;
  setCsrfToken(session.csrfToken);
}

/** Leaves the page, so that nothing of the session stays in it. */
export async function signOut(): Promise<void> {
  await withCookieLock(() => unless401(call('DELETE /sessions/current', {}, { organization: null })));
  turn += 1;
  setCsrfToken(null);
  location.assign(`${basePath}/console/login`);
}
