import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/ports.ts';
import { type Program, startProgram } from '../../test/support/program.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import type { Sink } from '../bench/lib/sink.ts';
import { buildProgram, builtProgram } from '../lib/built-program.ts';
import { type RouteOptions, routesTo } from './routes.ts';

export const roles = ['api', 'ingest', 'controller', 'delivery'] as const;
export type Role = (typeof roles)[number];

const key = `ph_${'k'.repeat(52)}`;

/** The roles of the built program as processes on a Redis of their own, which holds the resources, too. */
export interface Installation {
  redis: RedisServer;
  prefix: string;
  shards: number;
  /** Where events are taken for all receivers. */
  ingest: string;
  /** Where events are taken for the receivers of `more`; without it as `ingest`. */
  ingestMore: string;
  /** The oldest of a role first. */
  programs: Record<Role, Program[]>;
  start(role: Role): Promise<void>;
  stop(): Promise<void>;
}

export interface InstallationOptions {
  sinks: readonly Sink[];
  shards: number;
  redisArguments: readonly string[];
  /** Over which port of this machine a role reaches Redis; default: Redis itself. */
  lineOf?: (role: Role, redis: RedisServer) => Promise<number>;
  routes?: RouteOptions;
  /** Receivers behind another source. */
  more?: { sinks: readonly Sink[]; routes: RouteOptions };
  environment?: Record<string, string>;
}

/** With a source and a route to each receiver; no role is started yet. */
export async function prepareInstallation(options: InstallationOptions): Promise<Installation> {
  const { sinks, shards } = options;
  buildProgram();
  const redis = await startRedis([...options.redisArguments]);
  const [port, ingestPort] = [await freePort(), await freePort()];
  const origin = `http://127.0.0.1:${port}`;
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-chaos-'));
  const common = {
    POSTHORN_HOST: '127.0.0.1',
    POSTHORN_REDIS_URL: redis.url,
    POSTHORN_RESOURCE_STORE: 'redis',
    POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
    POSTHORN_EGRESS_ALLOWED_CIDRS: '127.0.0.0/8',
    POSTHORN_SHARDS: String(shards),
    POSTHORN_LOG_LEVEL: 'error',
    POSTHORN_PORT: String(port),
    ...options.environment,
  };
  const programs: Installation['programs'] = { api: [], ingest: [], controller: [], delivery: [] };
  const stop = async (): Promise<void> => {
    for (const program of Object.values(programs).flat()) await program.stop();
    await redis.stop();
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    // Standalone makes the organization and the resources; then the roles run on without it, so that nothing restarts them.
    const standalone = startProgram(['standalone'], { ...common, POSTHORN_DATA_DIR: directory, POSTHORN_API_KEY: key }, builtProgram);
    try {
      await standalone.waitForOutput(/^posthorn ready/m, 60_000);
      const [of, receivers] = [`http://127.0.0.1:${ingestPort}`, options.more];
      const ingest = of + (await routesTo(sinks, { origin, key }, options.routes));
      const ingestMore = receivers === undefined ? ingest : of + (await routesTo(receivers.sinks, { origin, key }, receivers.routes));
      const lines: Partial<Record<Role, number>> = {};
      for (const role of roles) lines[role] = (await options.lineOf?.(role, redis)) ?? redis.port;
      const start = async (role: Role): Promise<void> => {
        const own = {
          POSTHORN_REDIS_URL: `redis://127.0.0.1:${lines[role]}/0`,
          POSTHORN_OPS_PORT: String(await freePort()),
          ...(role === 'ingest' && { POSTHORN_PORT: String(ingestPort) }),
        };
        programs[role].push(startProgram([role], { ...common, ...own }, builtProgram));
      };
      return { redis, prefix: 'posthorn:', shards, ingest, ingestMore, programs, start, stop };
    } finally {
      await standalone.stop();
    }
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Waits until events are taken. */
export async function untilServed({ ingest }: Pick<Installation, 'ingest'>): Promise<void> {
  await eventually('ingest to be up', 60_000, async () => {
    const { ok } = await fetch(ingest, { method: 'POST', body: '{"number":-1,"sent":0}' });
    return ok;
  });
}
