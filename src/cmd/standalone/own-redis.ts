import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { commandConnection } from '../../redis/connection.ts';
import type { Component } from '../../runtime/supervisor.ts';
import { socketPath } from './socket-path.ts';

const stopDeadlineMs = 15_000;
/** Connections of a running standalone begin with this name. */
export const standaloneConnectionName = 'standalone';

/** A redis-server of standalone's own: append-only file in the data directory, reached by a unix socket. */
export class OwnRedis implements Component {
  readonly name = 'redis';
  /** What `commandConnection` takes. */
  readonly url: string;
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor(dataDirectory: string, options: { clock: Clock; logger: Logger }) {
    this.#directory = join(resolve(dataDirectory), 'redis');
    this.#clock = options.clock;
    this.#logger = options.logger;
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    this.url = socketPath(this.#directory, 'redis.sock');
  }

  /**
   * Ends a redis-server that a killed standalone has left behind. Throws IN_USE when a living one works with this data
   * directory.
   */
  async takeOver(): Promise<void> {
    const probe = commandConnection(this.url, { name: 'posthorn-probe' });
    probe.on('error', () => {});
    try {
      await probe.connect();
      const clients = await probe.call('CLIENT', 'LIST');
      if (String(clients).includes(`name=posthorn-${standaloneConnectionName}-`)) {
        throw new PosthornError('IN_USE', `another posthorn standalone is running with the data directory of ${this.#directory}`);
      }
      this.#logger.warn({}, 'stopping a redis-server that an earlier standalone process left running');
      const pid = Number(/process_id:(\d+)/.exec(await probe.info('server'))?.[1]);
      await probe.call('SHUTDOWN').catch(() => {});
      while (isRunning(pid)) await this.#clock.sleep(50);
    } catch (error) {
      if (error instanceof PosthornError) throw error;
      // nobody answers: nothing was left behind
    } finally {
      probe.disconnect();
    }
  }

  /** Waits until it answers; false when the signal aborts before. */
  async waitUntilUp(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const probe = commandConnection(this.url, { name: 'posthorn-probe' });
      probe.on('error', () => {});
      try {
        await probe.connect();
        return true;
      } catch {
        await this.#clock.sleep(20, signal);
      } finally {
        probe.disconnect();
      }
    }
    return false;
  }

  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const child = spawn('redis-server', this.#arguments(), { stdio: 'ignore', detached: true });
    const ended = Promise.withResolvers<string>();
    child.once('error', (error: NodeJS.ErrnoException) => ended.resolve(error.code === 'ENOENT' ? notInstalled : error.message));
    child.once('exit', (code, killedBy) => ended.resolve(`redis-server stopped with ${killedBy ?? code}${this.#lastWords()}`));
    const stop = (): void => void this.#stop(child);
    signal.addEventListener('abort', stop, { once: true });
    const reason = await ended.promise;
    signal.removeEventListener('abort', stop);
    if (!signal.aborted) throw new PosthornError('UNAVAILABLE', reason);
  }

  async #stop(child: ChildProcess): Promise<void> {
    if (child.pid === undefined || child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    const cancel = this.#clock.after(stopDeadlineMs, () => child.kill('SIGKILL'));
    await exited;
    cancel();
  }

  #arguments(): string[] {
    // Half of the memory leaves room for the rewrite of the append-only file and for the other processes.
    const maxMemoryBytes = Math.floor(Math.min(totalmem(), process.constrainedMemory() || Number.MAX_SAFE_INTEGER) / 2);
    return [
      '--port',
      '0',
      '--unixsocket',
      this.url,
      '--unixsocketperm',
      '700',
      '--dir',
      this.#directory,
      '--logfile',
      join(this.#directory, 'redis.log'),
      '--appendonly',
      'yes',
      '--appendfsync',
      'everysec',
      // Where little is kept, a rewrite at every 64 MB would be under way most of the time.
      '--auto-aof-rewrite-min-size',
      '256mb',
      '--save',
      '',
      '--maxmemory',
      String(maxMemoryBytes),
      '--maxmemory-policy',
      'noeviction',
      '--stream-node-max-bytes',
      '512',
    ];
  }

  #lastWords(): string {
    try {
      const lines = readFileSync(join(this.#directory, 'redis.log'), 'utf8').trimEnd().split('\n');
      return `: ${lines.at(-1) ?? ''}`;
    } catch {
      return '';
    }
  }
}

const notInstalled = 'redis-server is not installed: install it with the package manager of your system, or set POSTHORN_REDIS_URL';

function isRunning(pid: number): boolean {
  try {
    return Number.isInteger(pid) && process.kill(pid, 0);
  } catch {
    return false;
  }
}
