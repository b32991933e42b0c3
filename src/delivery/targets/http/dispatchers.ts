import { createHash } from 'node:crypto';
import { lookup as resolve } from 'node:dns';
import { rootCertificates } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { Agent, type Dispatcher } from 'undici';
import type { Clock } from '../../../core/clock.ts';
import { EgressPolicy, type EgressRules, RefusedAddresses } from '../../../core/egress-policy.ts';
import { guardedConnector, type TlsIdentity } from './guarded-connector.ts';
import { type NameLookup, NameLookups } from './name-lookups.ts';
import { readingLeniently } from './response-heads.ts';

const maxAgents = 1000;
/** Names and values of all headers of a response together. Policies of browsers and sets of cookies need more than the 16 KiB of Node. */
export const maxResponseHeadersKiB = 64;

/** Settings by which connections may be shared. */
export interface ConnectionRules {
  egress: EgressRules;
  /** `ca` null: the well-known authorities. `cert` and `key` null: none is shown. PEM texts. */
  tls: { ca: string | null; cert: string | null; key: string | null } | null;
  /** Through the egress proxy of the installation. */
  usesProxy: boolean;
}

/**
 * Connection pools, one per set of egress rules and TLS identity: a socket that one organization may open must not serve another
 * that may not. Connections live at most a minute, so that changes of DNS and policy are seen.
 */
export class Dispatchers {
  readonly #connections: number;
  readonly #ca: string[] | undefined;
  readonly #proxy: URL | null;
  readonly #refused: RefusedAddresses;
  readonly #lookups: NameLookups;
  readonly #clock: Clock;
  readonly #agents = new LRUCache<string, Agent>({ max: maxAgents, dispose: (agent) => void agent.close().catch(() => undefined) });

  /**
   * `connections`: most per receiver. `extraCa`: PEM of certificate authorities trusted besides the well-known ones. `proxyUrl`: the
   * egress proxy, `http://` or `https://`, with user and password if required.
   */
  constructor({
    connections,
    clock,
    extraCa,
    proxyUrl,
    refused = new RefusedAddresses(),
    lookup = resolve,
    lookupThreads,
  }: {
    connections: number;
    clock: Clock;
    extraCa?: string;
    proxyUrl?: string;
    refused?: RefusedAddresses;
    /** Replaces DNS in tests. */
    lookup?: NameLookup | undefined;
    /** Threads of libuv. Default: 4. */
    lookupThreads?: number | undefined;
  }) {
    this.#lookups = new NameLookups(lookup, clock, lookupThreads);
    this.#clock = clock;
    this.#refused = refused;
    this.#connections = connections;
    this.#ca = extraCa === undefined ? undefined : [...rootCertificates, extraCa];
    this.#proxy = proxyUrl === undefined ? null : new URL(proxyUrl);
  }

  /** Returns the pool for these rules, and reopens it if it was closed as unused. */
  forRules(rules: ConnectionRules): () => Dispatcher {
    const key = createHash('sha256').update(JSON.stringify(rules)).digest('base64');
    return () => this.#agents.get(key) ?? this.#open(key, rules);
  }

  #open(key: string, { egress, tls, usesProxy }: ConnectionRules): Dispatcher {
    const identity: TlsIdentity = {
      ...(tls?.ca != null ? { ca: [tls.ca] } : this.#ca !== undefined && { ca: this.#ca }),
      ...(tls?.cert != null && tls.key !== null && { cert: tls.cert, key: tls.key }),
    };
    const agent = new Agent({
      connect: readingLeniently(
        guardedConnector({
          policy: new EgressPolicy(egress, this.#refused),
          tls: identity,
          proxy: usesProxy ? (this.#proxy ?? 'missing') : null,
          clock: this.#clock,
          lookup: this.#lookups.lookup,
        }),
      ),
      connections: this.#connections,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: 15_000,
      keepAliveMaxTimeout: 60_000,
      clientTtl: 60_000,
      maxHeaderSize: maxResponseHeadersKiB * 1024,
      // One deadline of our own covers the whole attempt.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    this.#agents.set(key, agent);
    return agent;
  }

  /** Breaks what is still under way. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#agents.values()].map((agent) => agent.destroy()));
  }
}
