import { lookup as resolve } from 'node:dns';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { DEFAULT_CIPHERS } from 'node:tls';
import { buildConnector } from 'undici';
import type { Clock } from '../../../core/clock.ts';
import { type EgressPolicy, type HostRefusal, hostAndPort } from '../../../core/egress-policy.ts';
import { BlockedAddressError, BlockedHostError } from '../refusals.ts';
import { addressAndPort, type ConnectionTrace, traceConnecting, tracedConnection } from './exchange-trace.ts';
import type { NameLookup } from './name-lookups.ts';
import { openTunnel } from './tunnel.ts';

/** A connection that takes longer than the longest attempt is given up. */
const connectTimeoutMs = 60_000;

/** Without Diffie-Hellman over integers: the receiver chooses its numbers, and with 10,000 bits a handshake takes a second of the event loop. */
const ciphers = `${DEFAULT_CIPHERS}:!DHE`;

/** PEM texts. */
export interface TlsIdentity {
  /** Authorities trusted instead of the well-known ones. */
  ca?: string[];
  cert?: string;
  key?: string;
}

export interface ConnectorOptions {
  policy: EgressPolicy;
  tls: TlsIdentity;
  /** Null: connect to the receiver itself; `missing`: there should be a proxy, and there is none. */
  proxy: URL | 'missing' | null;
  /** Clock for the times of connections. */
  clock: Clock;
  /** Default: that of Node, one for all callers. */
  lookup?: NameLookup;
}

/**
 * Connects only to hosts and addresses that the policy allows. Checked are the literal in the URL, which no lookup hook sees, every
 * address of a DNS answer, and the address that the socket has in the end. A proxy gets the address that was checked.
 */
export function guardedConnector({ policy, tls, proxy, clock, lookup = resolve }: ConnectorOptions): buildConnector.connector {
  // Only while a socket begins to connect, which starts its lookup at once.
  let connecting: ConnectionTrace | null = null;
  const tracedLookup: NameLookup = (hostname, options, callback) => {
    const trace = connecting;
    if (trace === null) {
      lookup(hostname, options, callback);
      return;
    }
    trace.lookupBeganAtMs = clock.now();
    lookup(hostname, options, (error, addresses) => {
      if (error === null) trace.lookedUpAtMs = clock.now();
      callback(error, addresses);
    });
  };
  const whileConnecting = <T>(trace: ConnectionTrace, begin: () => T): T => {
    connecting = trace;
    try {
      return begin();
    } finally {
      connecting = null;
    }
  };
  const secure = { allowH2: false, timeout: connectTimeoutMs, minVersion: 'TLSv1.2', ciphers, ...tls } as const;
  const connectorFor = (port: number): buildConnector.connector =>
    buildConnector({
      ...secure,
      lookup: guardedLookup(policy, port, tracedLookup),
    });
  const connectors = new Map<number, buildConnector.connector>();
  const direct: buildConnector.connector = (options, callback) => {
    const { host, port } = hostAndPort(options);
    const refusal = policy.refusalOf(host, port);
    if (refusal !== null) {
      callback(refusalError(refusal, host), null);
      return;
    }
    const connect = connectors.get(port) ?? connectorFor(port);
    connectors.set(port, connect);
    const { trace, ended } = tracedConnection(options, { clock, callback });
    const begin = (): unknown =>
      connect(withServerName(options), (...[error, socket]) => {
        if (error !== null) return ended(error, null);
        const remote = socket.remoteAddress ?? '';
        if (policy.allows(host, remote, port)) return ended(null, socket);
        socket.destroy();
        return ended(new BlockedAddressError(remote), null);
      });
    traceConnecting(trace, whileConnecting(trace, begin), clock);
  };
  if (proxy === null) return direct;
  if (proxy === 'missing') return (_, callback) => callback(new Error('useStaticIp: this installation has no egress proxy'), null);
  return (options, callback) => {
    const { host, port } = hostAndPort(options);
    const refusal = policy.refusalOf(host, port);
    if (refusal !== null) {
      callback(refusalError(refusal, host), null);
      return;
    }
    const { trace, ended } = tracedConnection(options, { clock, callback });
    /** The proxy may reach only some of the addresses of a name, such as those of one family. */
    const through = async (addresses: readonly string[]): Promise<Socket> => {
      let failure: unknown = new Error('the name has no address');
      for (const address of addresses) {
        trace.peerAddress = addressAndPort(address, port);
        try {
          const socket = await openTunnel(proxy, { address, port, timeoutMs: connectTimeoutMs });
          trace.connectedAtMs = clock.now();
          return socket;
        } catch (error) {
          failure = error;
        }
      }
      throw failure;
    };
    const connect = (addresses: readonly string[]): void => {
      through(addresses).then(
        (socket) => upgrade(options, socket, ended),
        (error: Error) => ended(error, null),
      );
    };
    if (isIP(host) !== 0) {
      connect([host]);
      return;
    }
    const look = guardedLookup(policy, port, tracedLookup);
    whileConnecting(trace, () =>
      look(host, { all: true }, (error, addresses) => {
        if (error !== null) ended(error, null);
        else connect(Array.isArray(addresses) ? addresses.map(({ address }) => address) : []);
      }),
    );
  };

  function upgrade(options: buildConnector.Options, socket: Socket, callback: buildConnector.Callback): void {
    if (options.protocol !== 'https:') {
      callback(null, socket);
      return;
    }
    buildConnector(secure)({ ...withServerName(options), httpSocket: socket }, callback);
  }
}

/** TLS sends the name of a server without a trailing dot (RFC 6066, section 3): servers written in Go end the handshake otherwise. */
function withServerName(options: buildConnector.Options): buildConnector.Options {
  return options.hostname.endsWith('.') ? { ...options, servername: options.hostname.slice(0, -1) } : options;
}

function refusalError(refusal: HostRefusal, host: string): Error {
  return refusal === 'unlisted' ? new BlockedHostError(host) : new BlockedAddressError(host);
}

function guardedLookup(policy: EgressPolicy, port: number, lookup: NameLookup): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const blocked = error === null ? addresses.find(({ address }) => !policy.allows(hostname, address, port)) : undefined;
      const first = addresses?.[0];
      if (error !== null) callback(error, []);
      else if (blocked !== undefined) callback(new BlockedAddressError(blocked.address), []);
      else if (options.all === true) callback(null, addresses);
      else callback(null, first?.address ?? '', first?.family);
    });
  };
}
