import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
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

/** redis-server logs this line when it starts although its append-only file ends in the middle of a write. */
const cutLine = 'loaded anyway because aof-load-truncated is enabled';
/** redis-server adds this line when it has removed all commands of the script that was cut off. */
const wholeScriptLine = 'Revert incomplete MULTI/EXEC';

/**
 * A redis-server of standalone's own: append-only file in the data directory, reached by a unix socket.
 *
 * A redis-server that was killed in the middle of a write leaves a part of a command at the end of the file. The next start removes that part only, and
 * keeps the commands before it of the same script. What was written behind them would be applied together with them at the start after that. A start
 * right after the first one removes them, so that redis-server starts twice then. Nobody can write before: it starts with another socket, which gets its
 * name once the file is whole.
 */
export class OwnRedis implements Component {
  readonly name = 'redis';
  /** Options of `commandConnection`. */
  readonly url: string;
  /** The same until the append-only file is loaded and whole. */
  readonly #startUrl: string;
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #takesLargePayloads: boolean;

  /** `takesLargePayloads`: payloads may be above 1 MiB. */
  constructor(
    dataDirectory: string,
    { takesLargePayloads = false, ...options }: { clock: Clock; logger: Logger; takesLargePayloads?: boolean },
  ) {
    this.#takesLargePayloads = takesLargePayloads;
    this.#directory = join(resolve(dataDirectory), 'redis');
    this.#clock = options.clock;
    this.#logger = options.logger;
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    this.url = socketPath(this.#directory, 'redis.sock');
    this.#startUrl = socketPath(this.#directory, 'start.sock');
  }

  /**
   * Ends a redis-server that a killed standalone has left behind. Throws IN_USE when a living one works with this data
   * directory.
   */
  async takeOver(): Promise<void> {
    for (const url of [this.url, this.#startUrl]) await this.#takeOver(url);
  }

  async #takeOver(url: string): Promise<void> {
    const probe = commandConnection(url, { name: 'posthorn-probe' });
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
      // no server answers: nothing was left behind
    } finally {
      probe.disconnect();
    }
  }

  /** Waits until it answers; false when the signal aborts before. */
  async waitUntilUp(signal: AbortSignal): Promise<boolean> {
    return await this.#waitUntilUp(this.url, 'probe', signal);
  }

  async #waitUntilUp(url: string, name: string, signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const probe = commandConnection(url, { name: `posthorn-${name}` });
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
    if (await this.#start(signal, { isFirst: true })) return;
    this.#logger.warn(
      {},
      'redis-server was killed in the middle of a write; starting it again, so that it removes the script that was cut off',
    );
    if (!signal.aborted) await this.#start(signal, { isFirst: false });
  }

  /** Runs it until it ends. False: it was stopped before its first use, for its append-only file has a part of a script. */
  async #start(signal: AbortSignal, { isFirst }: { isFirst: boolean }): Promise<boolean> {
    const logged = this.#log().length;
    const child = spawn('redis-server', this.#arguments(), { stdio: 'ignore', detached: true });
    const ended = Promise.withResolvers<string>();
    child.once('error', (error: NodeJS.ErrnoException) => ended.resolve(error.code === 'ENOENT' ? notInstalled : error.message));
    child.once('exit', (code, killedBy) => ended.resolve(`redis-server stopped with ${killedBy ?? code}${this.#lastWords()}`));
    const hasEnded = new AbortController();
    void ended.promise.then(() => hasEnded.abort());
    const stop = (): void => void this.#stop(child);
    signal.addEventListener('abort', stop, { once: true });
    try {
      if (await this.#waitUntilUp(this.#startUrl, `${standaloneConnectionName}-start`, hasEnded.signal)) {
        if (isFirst && hasPartOfScript(this.#log().subarray(logged).toString())) {
          await this.#stop(child);
          return false;
        }
        this.#serve(child);
      }
      const reason = await ended.promise;
      if (!signal.aborted) throw new PosthornError('UNAVAILABLE', reason);
      return true;
    } finally {
      signal.removeEventListener('abort', stop);
      rmSync(this.url, { force: true });
    }
  }

  #serve(child: ChildProcess): void {
    try {
      renameSync(this.#startUrl, this.url);
    } catch (error) {
      this.#logger.error({ err: error }, 'the socket of redis-server is gone; stopping it');
      void this.#stop(child);
    }
  }

  async #stop(child: ChildProcess): Promise<void> {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    const cancel = this.#clock.after(stopDeadlineMs, () => child.kill('SIGKILL'));
    await exited;
    cancel();
  }

  #arguments(): string[] {
    // Half of the memory remains for the rewrite of the append-only file and for the other processes.
    const maxMemoryBytes = Math.floor(Math.min(totalmem(), process.constrainedMemory() || Number.MAX_SAFE_INTEGER) / 2);
    return [
      '--port',
      '0',
      '--unixsocket',
      this.#startUrl,
      '--unixsocketperm',
      '700',
      '--dir',
      this.#directory,
      '--logfile',
      this.#logFile,
      '--appendonly',
      'yes',
      '--appendfsync',
      'everysec',
      // Where little is kept, a rewrite at every 64 MB would be under way most of the time, and one at every 256 MB beside large payloads.
      '--auto-aof-rewrite-min-size',
      this.#takesLargePayloads ? '1gb' : '256mb',
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

  get #logFile(): string {
    return join(this.#directory, 'redis.log');
  }

  /** Empty: there is none yet. */
  #log(): Buffer {
    try {
      return readFileSync(this.#logFile);
    } catch {
      return Buffer.alloc(0);
    }
  }

  #lastWords(): string {
    const last = this.#log().toString().trimEnd().split('\n').at(-1);
    return last ? `: ${last}` : '';
  }
}

function hasPartOfScript(log: string): boolean {
  return log.includes(cutLine) && !log.includes(wholeScriptLine);
}

const notInstalled = 'redis-server is not installed: install it with the package manager of your system, or set POSTHORN_REDIS_URL';

function isRunning(pid: number): boolean {
  try {
    return Number.isInteger(pid) && process.kill(pid, 0);
  } catch {
    return false;
  }
}
