import { hopHeader } from './hops.ts';
import { asReceiversRead, isKeptHeader } from './kept-headers.ts';
import { ofKnownNames } from './known-names.ts';

/** Headers that belong to the connection (RFC 9110, section 7.6.1), not to the event. */
const dropped = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const ownPrefix = 'x-posthorn-';

/**
 * The sender's headers as they are stored and forwarded: lower-case names, repeated ones repeated, less hop-by-hop headers (those that
 * `Connection` names too), host, credentials, which are meant for this installation, `x-posthorn-*` but for the hops (`hops.ts`), and what receivers believe of a proxy.
 *
 * `rawHeaders`: alternating names and values, as in node:http. `connection`: the header of that name.
 */
export function forwardedHeaders(rawHeaders: readonly string[], connection: string | undefined): [string, string][] {
  const named = connection === undefined ? undefined : namedBy(connection);
  const forwarded: [string, string][] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = forwardedName(rawHeaders[i] ?? '');
    if (name === '' || named?.has(asReceiversRead(name)) === true) continue;
    forwarded.push([name, rawHeaders[i + 1] ?? '']);
  }
  return forwarded;
}

/** A name in lower case; empty for one that is not forwarded, regardless of `Connection`. */
const forwardedName = ofKnownNames((rawName) => {
  const name = rawName.toLowerCase();
  if (name === hopHeader) return name;
  const read = asReceiversRead(name);
  return dropped.has(read) || read.startsWith(ownPrefix) || !isKeptHeader(name) ? '' : name;
});

/** Whether a header with this name is stored with the event that came with it. */
export function isForwardedHeader(name: string): boolean {
  return forwardedName(name) !== '';
}

function namedBy(connection: string): Set<string> | undefined {
  const value = connection.toLowerCase();
  if (value === 'keep-alive' || value === 'close') return undefined;
  return new Set(value.split(',').map((name) => asReceiversRead(name.trim())));
}
