import { randomBase32 } from './random.ts';

const acceptable = /^[A-Za-z0-9._:-]{1,128}$/;

/** The sender's `X-Request-Id` when it is harmless to echo and to log, else a new one. */
export function requestIdFor(sent: string | string[] | undefined): string {
  return typeof sent === 'string' && acceptable.test(sent) ? sent : `req_${randomBase32(16)}`;
}
