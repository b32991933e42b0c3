import type { IncomingMessage } from 'node:http';
import { isLoopbackHost, isOwnOrigin } from '../../core/loopback.ts';
import type { Keyring } from '../../core/sealing.ts';
import { sessionCookieSealingContext } from '../../core/sealing-contexts.ts';

/** Content of the cookie, sealed. */
export interface CookieContent {
  /** Id of the organization of the session. */
  org: string;
  /** Id of the session. */
  id: string;
  secret: string;
}

const cookieName = 'posthorn_session';

export function sealCookie(keyring: Keyring, { org, id, secret }: CookieContent): string {
  return keyring.seal(`${org} ${id} ${secret}`, sessionCookieSealingContext);
}

/** Null: this installation has not made it, or its encryption key is gone. */
export function openCookie(keyring: Keyring, value: string): CookieContent | null {
  try {
    const [org = '', id = '', secret = ''] = keyring.open(value, sessionCookieSealingContext).split(' ');
    return { org, id, secret };
  } catch {
    return null;
  }
}

/** The value of the cookie in a `Cookie` header; null: it is not there. Of two that differ neither is taken: a neighbouring host name may have set one. */
export function cookieValue(header: string | undefined): string | null {
  const values = new Set<string>();
  for (const part of header?.split(';') ?? []) {
    const [name = '', ...value] = part.split('=');
    if (name.trim() === cookieName) values.add(value.join('=').trim());
  }
  const [first = null] = values;
  return values.size > 1 ? '' : first;
}

/** The `Set-Cookie` header of the answer to a request, for what is below `basePath`. `maxAgeSeconds` 0: the browser forgets the cookie. */
export function setCookieHeader(request: IncomingMessage, basePath: string, value: string, maxAgeSeconds: number): string {
  const secure = isPlainLoopback(request) ? '' : '; Secure';
  return `${cookieName}=${value}; Max-Age=${maxAgeSeconds}; Path=${basePath}/; HttpOnly; SameSite=Strict${secure}`;
}

/** Whether the browser uses loopback over plain HTTP, where it would not send a `Secure` cookie (not all browsers do). */
function isPlainLoopback({ headers, socket }: IncomingMessage): boolean {
  const { host, origin, 'x-forwarded-proto': proto = '' } = headers;
  const isHttps =
    'encrypted' in socket ||
    [proto]
      .flat()
      .join()
      .toLowerCase()
      .split(',')
      .some((each) => each.trim() === 'https');
  return isLoopbackHost(host) && !isHttps && isOwnOrigin(origin, host);
}
