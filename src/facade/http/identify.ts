import { isPosthornError, PosthornError } from '../../core/errors.ts';
import type { Access } from './access.ts';
import { type AuthenticateOptions, authenticate, authenticateCredential } from './authentication.ts';
import type { Caller } from './caller.ts';
import type { Exchange } from './exchange.ts';
import type { LoopbackAccess } from './loopback-access.ts';
import type { FacadeServices } from './services.ts';
import { requireCsrfToken, shownSession } from './session-access.ts';
import { cookieValue, setCookieHeader } from './session-cookie.ts';

export interface IdentifyOptions extends AuthenticateOptions {
  /** Path prefix of the API at the proxy, such as `/posthorn`; empty: none. */
  basePath: string;
  /** Null: every request needs credentials. */
  loopback: LoopbackAccess | null;
  /** Whether the cookie of a session is a credential. */
  takesSessions: boolean;
  /** The request logs out: the browser forgets the cookie of a session that has ended. Default: false. */
  isLogOut?: boolean;
  /** The credentials of an open request are checked again. The check does not renew the session. Default: false. */
  isRecheck?: boolean;
}

export interface Identified {
  caller: Caller;
  access: Access;
}

/**
 * Identifies the caller by its API key or token; without one by the cookie of a session; without that by the loopback address, if that is allowed. Rejects as
 * `authenticate` does, and with FORBIDDEN if a required CSRF token is missing.
 */
export async function identify(exchange: Exchange, services: FacadeServices, options: IdentifyOptions): Promise<Identified> {
  const { request } = exchange;
  const { headers, method } = request;
  const { loopback } = options;
  if (headers.authorization === undefined && headers['x-api-key'] === undefined) {
    const cookie = options.takesSessions ? cookieValue(headers.cookie) : null;
    if (cookie !== null) return await bySession(exchange, cookie, { services, options });
    if (loopback?.accepts(request) === true) {
      requireCsrfToken(method, headers['x-posthorn-csrf'], loopback.csrfToken);
      const caller = await loopback.caller(services.registry, options.organization);
      return { caller, access: { how: 'loopback', session: null, csrfToken: loopback.csrfToken } };
    }
  }
  const caller = await authenticate(request, services, { ...options, isKnown: options.isRecheck });
  return { caller, access: { how: caller.credential.type === 'user' ? 'token' : 'apiKey', session: null, csrfToken: null } };
}

async function bySession(
  exchange: Exchange,
  cookie: string,
  { services, options }: { services: FacadeServices; options: IdentifyOptions },
): Promise<Identified> {
  const { request } = exchange;
  const shown = await shownSession(services, cookie);
  if (shown === null) throw sessionEnded(exchange, options);
  const { org, session, csrfToken, credential } = shown;
  requireCsrfToken(request.method, request.headers['x-posthorn-csrf'], csrfToken);
  try {
    const asked = { ...options, organization: options.organization ?? org, isKnown: true };
    const caller = await authenticateCredential(request, credential, services, asked);
    if (options.isRecheck !== true) void services.sessions.seen(org, session).catch(() => undefined);
    return { caller, access: { how: 'session', session: { org, session }, csrfToken } };
  } catch (error) {
    if (!hasEnded(error, options)) throw error;
    await services.sessions.end(org, session.id);
    throw sessionEnded(exchange, options);
  }
}

/** Whether the credential of the session is no longer accepted, or has lost its rights in the organization in which the session began. */
function hasEnded(error: unknown, { organization }: IdentifyOptions): boolean {
  return isPosthornError(error, 'UNAUTHORIZED') || (organization === null && isPosthornError(error, 'RESOURCE_NOT_FOUND'));
}

/**
 * Only the response to a logout clears the cookie. The response to an earlier request may arrive after the next login, whose cookie has the same name, and would
 * clear that one.
 */
function sessionEnded({ request, response }: Exchange, { basePath, isLogOut = false }: IdentifyOptions): PosthornError {
  if (isLogOut) response.setHeader('Set-Cookie', setCookieHeader(request, basePath, '', 0));
  return new PosthornError('UNAUTHORIZED', 'The session has ended: log in again, or send an API key.');
}
