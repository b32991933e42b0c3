import { isCredentialHeader } from '../core/credential-names.ts';
import { ofKnownNames } from '../core/known-names.ts';

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

const plain = /^[a-z0-9-]*$/;
const separators = /[^a-z0-9]/g;

/**
 * Headers that receivers believe because a proxy of theirs sets them: who the client is, what it has proved, which URL and method are meant. From a
 * sender they would be believed, too.
 */
const trusted = new RegExp(
  [
    'forwarded$',
    'x-forwarded-',
    'x-real-ip$',
    'x-client-ip$',
    'x-cluster-client-ip$',
    'true-client-ip$',
    'x-original-',
    'x-rewrite-',
    'x-override-',
    'x-http-method',
    'x-method-override$',
    'x-remote-',
    'remote-',
    'x-client-cert',
    'x-client-dn$',
    'x-client-verify$',
    'client-cert',
    'x-ssl-',
    'ssl-client-',
    'x-auth-request-',
    'x-authenticated-',
    'x-webauth-',
    'x-amzn-',
    'x-envoy-',
    'x-goog-iap-',
    'x-goog-authenticated-user-',
    'x-ms-client-principal',
    'x-pomerium-',
    'x-ms-token-aad-',
    'x-tailscale-',
    'tailscale-',
    'fastly-client-ip$',
    'cf-(?:access-|connecting-|ipcountry$|visitor$)',
  ]
    .map((name) => `^${name}`)
    .join('|'),
);

/**
 * The sender's headers as they are stored and forwarded: lower-case names, repeated ones repeated, less hop-by-hop headers (those that
 * `Connection` names too), host, credentials, which are meant for this installation, `x-posthorn-*`, and what receivers believe of a proxy.
 *
 * `rawHeaders`: names and values in turn, as node:http has them. `connection`: the header of that name.
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

/** A name in lower case; empty for one that is not forwarded, whatever `Connection` says. */
const forwardedName = ofKnownNames((rawName) => {
  const name = rawName.toLowerCase();
  const read = asReceiversRead(name);
  const stays = dropped.has(read) || read.startsWith(ownPrefix) || trusted.test(read) || isCredentialHeader(read);
  return stays ? '' : name;
});

/** The name with `-` for each other separator: CGI, WSGI and PHP do not tell `-`, `_` and `.` apart, so that `x_forwarded_user` is believed as well. */
function asReceiversRead(name: string): string {
  return plain.test(name) ? name : name.replaceAll(separators, '-');
}

function namedBy(connection: string): Set<string> | undefined {
  const value = connection.toLowerCase();
  if (value === 'keep-alive' || value === 'close') return undefined;
  return new Set(value.split(',').map((name) => asReceiversRead(name.trim())));
}
