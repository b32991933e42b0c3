import type { IncomingHttpHeaders } from 'node:http';

/** The header, when it is there once and not empty. */
export function headerValue(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name];
  return typeof value === 'string' && value !== '' ? value : null;
}
