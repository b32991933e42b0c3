import { basePath } from './base.ts';
import { type Answer, ApiError, call, setCsrfToken } from './client.ts';

export type Session = Answer<'GET /sessions/current'>;

/** Null: nobody is signed in. Throws ApiError for whatever else the API refuses. */
export async function currentSession(signal?: AbortSignal): Promise<Session | null> {
  // The answer to a session that has ended takes its cookie away; without it this machine may do.
  const session = (await askedSession(signal)) ?? (await askedSession(signal));
  setCsrfToken(session?.csrfToken ?? null);
  return session;
}

async function askedSession(signal: AbortSignal | undefined): Promise<Session | null> {
  try {
    return await call('GET /sessions/current', {}, { organization: null, signal });
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.status === 401) return null;
    throw thrown;
  }
}

/** With an API key or a Kubernetes token; `organization` says for which one a token is meant. Throws ApiError. */
export async function signIn(credential: string, organization: string | undefined): Promise<void> {
  const session = await call('POST /sessions', { body: { credential, organization } }, { organization: null });
  setCsrfToken(session.csrfToken);
}

/** Leaves the page, so that nothing of the session stays in it. */
export async function signOut(): Promise<void> {
  await call('DELETE /sessions/current', {}, { organization: null });
  setCsrfToken(null);
  location.assign(`${basePath}/console/login`);
}
