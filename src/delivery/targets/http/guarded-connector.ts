import { lookup as resolve } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { BlockedAddressError } from './blocked-address-error.ts';
import type { EgressPolicy } from './egress-policy.ts';

/** A connection that takes longer than the longest attempt is given up. */
const connectTimeoutMs = 60_000;

/**
 * Connects only to addresses that the policy allows. Checked are the literal in the URL, which no lookup hook sees, every
 * address of a DNS answer, and the address that the socket has in the end.
 */
export function guardedConnector(policy: EgressPolicy, ca: readonly string[] | undefined): buildConnector.connector {
  const connectorFor = (port: number): buildConnector.connector =>
    buildConnector({
      allowH2: false,
      timeout: connectTimeoutMs,
      minVersion: 'TLSv1.2',
      ...(ca && { ca: [...ca] }),
      lookup: guardedLookup(policy, port),
    });
  const connectors = new Map<number, buildConnector.connector>();
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, '');
    const port = Number(options.port) || (options.protocol === 'https:' ? 443 : 80);
    if (isIP(host) !== 0 && !policy.allows(host, host, port)) {
      callback(new BlockedAddressError(host), null);
      return;
    }
    const connect = connectors.get(port) ?? connectorFor(port);
    connectors.set(port, connect);
    connect(options, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      const remote = socket.remoteAddress ?? '';
      if (policy.allows(host, remote, port)) return callback(null, socket);
      socket.destroy();
      return callback(new BlockedAddressError(remote), null);
    });
  };
}

function guardedLookup(policy: EgressPolicy, port: number): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const blocked = error === null ? addresses.find(({ address }) => !policy.allows(hostname, address, port)) : undefined;
      const first = addresses?.[0];
      if (error !== null) callback(error, []);
      else if (blocked !== undefined) callback(new BlockedAddressError(blocked.address), []);
      else if (options.all === true) callback(null, addresses);
      else callback(null, first?.address ?? '', first?.family);
    });
  };
}
