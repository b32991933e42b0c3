import { rootCertificates } from 'node:tls';
import { LRUCache } from 'lru-cache';
import { Agent, type Dispatcher } from 'undici';
import { EgressPolicy, type EgressRules } from './egress-policy.ts';
import { guardedConnector } from './guarded-connector.ts';

const mostPolicies = 1000;

/**
 * Connection pools, one per set of egress rules: a socket that one organization may open must not serve another that may
 * not. Connections live at most a minute, so that changes of DNS and policy are seen.
 */
export class Dispatchers {
  readonly #connections: number;
  readonly #ca: readonly string[] | undefined;
  readonly #agents = new LRUCache<string, Agent>({ max: mostPolicies, dispose: (agent) => void agent.close().catch(() => undefined) });

  /** `connections`: most per receiver. `extraCa`: PEM of certificate authorities trusted besides the well-known ones. */
  constructor({ connections, extraCa }: { connections: number; extraCa?: string }) {
    this.#connections = connections;
    this.#ca = extraCa === undefined ? undefined : [...rootCertificates, extraCa];
  }

  /** Gives the pool for these rules, made anew when it was closed for want of use. */
  forRules(rules: EgressRules): () => Dispatcher {
    const key = JSON.stringify(rules);
    return () => this.#agents.get(key) ?? this.#open(key, rules);
  }

  #open(key: string, rules: EgressRules): Dispatcher {
    const agent = new Agent({
      connect: guardedConnector(new EgressPolicy(rules), this.#ca),
      connections: this.#connections,
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: 15_000,
      keepAliveMaxTimeout: 60_000,
      clientTtl: 60_000,
      maxHeaderSize: 16_384,
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
