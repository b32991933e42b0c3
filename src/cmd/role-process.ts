import type { Server } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { collectDefaultMetrics, Registry } from 'prom-client';
import type { Clock } from '../core/clock.ts';
import { isPosthornError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { wholePayloadBytes } from '../core/payload-sizes.ts';
import { systemClock } from '../runtime/system-clock.ts';
import { buildInfo } from './build-info.ts';
import { type Config, type Role, unknownVariables } from './config.ts';
import { listen } from './listen.ts';
import { createOpsServer, type OpsHandler } from './ops-server.ts';
import { Readiness } from './readiness.ts';
import { readinessMetric } from './readiness-metric.ts';
import { createLogger } from './role-logger.ts';
import { compileWhenBusy, releaseStartMemory } from './start-memory.ts';

/** Context of every role. */
export interface RoleContext {
  config: Config;
  logger: Logger;
  clock: Clock;
  registry: Registry;
  readiness: Readiness;
  /** Aborts on SIGTERM, SIGINT and when the process that started this one is gone. */
  stopping: AbortSignal;
}

export interface RoleDefinition {
  role: Role;
  /** Names of the readiness checks; each is not ok until the role sets it. */
  checks: readonly string[];
  /** By how much what lives on the heap may grow before V8 collects all of it; default: as V8 sees fit. */
  heapGrowthPercent?: number;
  /** Runs until `stopping` aborts and everything under way has ended. A throw before that ends the process with 1. */
  run(context: RoleContext): Promise<void>;
}

/**
 * Heap growth of a process that carries events. Where little lives, V8 would collect all of it for every 5 MB more: every 2.5 s under load, and 30 ms
 * each time, in which nothing else runs (hack/bench/retries.ts).
 */
export const trafficHeapGrowthPercent = 150;

/**
 * Lets buffers count as the heap does, where payloads may be above 1 MiB. V8 would collect all of the heap for every 64 MB of buffers that come and go, which is once
 * for each payload of 25 MiB, and stops the process (hack/bench/large.ts).
 */
export function countBuffersAsHeap(): void {
  setFlagsFromString('--external-memory-accounted-in-global-limit');
}

/** Runs a role as this process: signals, logs, metrics; ends the process. */
export async function runAsProcess(
  definition: RoleDefinition,
  config: Config,
  environment: Record<string, string | undefined>,
): Promise<never> {
  if (definition.heapGrowthPercent !== undefined) setFlagsFromString(`--heap-growing-percent=${definition.heapGrowthPercent}`);
  if (config.maxPayloadBytes > wholePayloadBytes) countBuffersAsHeap();
  const logger = createLogger(definition.role, config);
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  buildInfo(registry);
  const stopping = new AbortController();
  stopOnSignal(stopping, config.drainMs, logger);
  process.on('unhandledRejection', (error) => {
    logger.error({ err: error }, 'unhandled error; the process exits');
    process.exit(1);
  });
  process.on('uncaughtException', (error) => {
    logger.error({ err: error }, 'unhandled error; the process exits');
    process.exit(1);
  });
  for (const name of unknownVariables(environment)) logger.warn({ name }, 'unknown environment variable');
  const readiness = new Readiness(definition.checks);
  readinessMetric(registry, readiness);
  void releaseStartMemory(readiness);
  void compileWhenBusy(readiness, systemClock);
  readiness.subscribe((missing) => process.send?.({ missing }, undefined, {}, () => {}));
  try {
    await definition.run({
      config,
      logger,
      clock: systemClock,
      registry,
      readiness,
      stopping: stopping.signal,
    });
    logger.info({}, 'stopped');
    process.exit(0);
  } catch (error) {
    // Such an error is for the person who started the program, not about a defect in it.
    if (isPosthornError(error)) {
      logger.error({ code: error.code }, error.message);
      if (definition.role === 'standalone') process.stderr.write(`posthorn: ${error.message}\n`);
    } else logger.error({ err: error }, 'the process failed and exits');
    process.exit(1);
  }
}

/** Ctrl-C reaches a program from the terminal and again from the script that started it. */
const sameRequestMs = 1000;

/** The first signal drains, a second one ends the process at once. */
function stopOnSignal(stopping: AbortController, drainMs: number, logger: Logger): void {
  let stoppedAtMs = 0;
  const stop = (reason: string, exitCode: number): void => {
    const nowMs = systemClock.now();
    if (stopping.signal.aborted) {
      if (nowMs - stoppedAtMs > sameRequestMs) process.exit(exitCode);
      return;
    }
    stoppedAtMs = nowMs;
    logger.info({ reason }, 'stopping');
    setTimeout(() => {
      logger.warn({ drainMs }, 'the drain deadline passed; unfinished work is left to other processes');
      process.exit(0);
    }, drainMs + 2000).unref();
    stopping.abort();
  };
  process.on('SIGTERM', () => stop('SIGTERM', 143));
  process.on('SIGINT', () => stop('SIGINT', 130));
  // Only processes that standalone has started have a channel: they do not outlive it.
  if (process.channel !== undefined) {
    process.on('disconnect', () => {
      logger.error({}, 'the standalone process ended; this process exits');
      process.exit(1);
    });
  }
}

const defaultOpsPort = 9090;

/** Serves health and metrics; a standalone that has started this process gets the port. */
export async function startOpsServer({ config, logger }: RoleContext, handler: OpsHandler): Promise<Server> {
  const server = createOpsServer(handler);
  const port = config.opsPort ?? defaultOpsPort;
  // A random port is meant for the process that has started this one.
  const opsPort = await listen(server, { port, host: port === 0 ? '127.0.0.1' : config.host, setting: 'POSTHORN_OPS_PORT' });
  process.send?.({ opsPort });
  logger.debug({ opsPort }, 'serving health and metrics');
  return server;
}
