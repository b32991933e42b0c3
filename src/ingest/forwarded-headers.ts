import { type Provider, secretHeader } from '../core/providers.ts';

/** Headers that belong to the connection or to this installation (RFC 9110, section 7.6.1), not to the event. */
const dropped = new Set([
  'authorization',
  'connection',
  'content-length',
  'cookie',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const ownPrefix = 'x-posthorn-';

/**
 * The sender's headers as they are stored and forwarded: lower-case names, repeated ones repeated, less hop-by-hop
 * headers (those that `Connection` names too), host, cookie, authorization, `x-posthorn-*` and what carries the source's secret itself.
 *
 * `rawHeaders`: names and values in turn, as node:http has them.
 */
export function forwardedHeaders(
  rawHeaders: readonly string[],
  { connection, provider }: { connection: string | undefined; provider: Provider },
): [string, string][] {
  const secret = secretHeader(provider);
  const named = connection === undefined ? undefined : namedBy(connection);
  const forwarded: [string, string][] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    if (dropped.has(name) || name.startsWith(ownPrefix) || name === secret || named?.has(name) === true) continue;
    forwarded.push([name, rawHeaders[i + 1] ?? '']);
  }
  return forwarded;
}

function namedBy(connection: string): Set<string> | undefined {
  const value = connection.toLowerCase();
  if (value === 'keep-alive' || value === 'close') return undefined;
  return new Set(value.split(',').map((name) => name.trim()));
}
