import { once } from 'node:events';
import { createServer, get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Registry } from 'prom-client';
import { AddressList } from '../../src/core/address-list.ts';
import type { Clock } from '../../src/core/clock.ts';
import type { Keyring } from '../../src/core/sealing.ts';
import { LinkedPayloads } from '../../src/data/history/linked-payloads.ts';
import { RateLimiter } from '../../src/data/intake/rate-limit.ts';
import type { RegistryReader } from '../../src/data/registry/registry.ts';
import { facadeMetrics } from '../../src/facade/http/metrics.ts';
import { payloadLinkHandler } from '../../src/facade/http/payload-link-handler.ts';
import { RequestMemory } from '../../src/facade/http/request-memory.ts';
import type { RedisClient } from '../../src/redis/connection.ts';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { testKeyring } from './controllers.ts';
import { silentLogger } from './logger.ts';

export interface PayloadLinkServer {
  /** The public URL that workers put before their links. */
  url: string;
  metrics: Registry;
  close(): Promise<void>;
}

interface Options {
  redis: RedisClient;
  prefix: string;
  registry: RegistryReader;
  shards?: number;
  clock?: Clock;
  keyring?: Keyring;
}

/** A server that has the links of thin deliveries, and nothing else. */
export async function startPayloadLinks(options: Options): Promise<PayloadLinkServer> {
  const { redis, prefix, registry, shards = 1, clock = systemClock, keyring = testKeyring } = options;
  const metrics = new Registry();
  const handler = payloadLinkHandler({
    memory: new RequestMemory(systemClock),
    trustedProxies: new AddressList([]),
    services: {
      registry,
      keyring,
      clock,
      logger: silentLogger,
      rateLimiter: new RateLimiter({ redis, prefix, clock, logger: silentLogger }),
    },
    payloads: new LinkedPayloads({ redis, prefix, shards: () => shards }),
    metrics: facadeMetrics(metrics),
  });
  const server = createServer((request, response) => {
    if (!handler(request, response)) response.writeHead(418).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    metrics,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export interface Fetched {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** What is behind a link, byte by byte: nothing is decompressed. */
export async function fetchLink(url: string): Promise<Fetched> {
  const [response] = (await once(get(url), 'response')) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(pieces) };
}

/** The link in the body of a thin delivery. */
export function linkIn({ body }: { body: Buffer }): string {
  return JSON.parse(body.toString()).url;
}
