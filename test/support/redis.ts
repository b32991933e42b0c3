import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { commandConnection } from '../../src/redis/connection.ts';
import { freePort } from './ports.ts';

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Of the process that runs now. */
  readonly pid: number;
  /** A connected client; closed by `stop`. */
  readonly client: ReturnType<typeof commandConnection>;
  /** Ends the process; `SIGKILL` to simulate a crash. The data directory stays, so that `start` finds the data again. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Holds the process still: its connections stay, and nothing is answered. Answers how it goes on. */
  freeze(): () => void;
  /** Starts the process again after `kill`, on the same port and data. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** A machine that stands still for a second or two fails no test. */
const commandTimeoutMs = 10_000;

/** A real redis-server of this test's own: free port, own directory, noeviction; `args` are further options. */
export async function startRedis(args: string[] = ['--save', '', '--appendonly', 'no']): Promise<RedisServer> {
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-redis-'));
  const url = `redis://127.0.0.1:${port}/0`;
  let child: ChildProcess | null = null;
  const client = commandConnection(url, { commandTimeoutMs });
  client.on('error', () => {});

  const start = async (): Promise<void> => {
    const options = [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--dir',
      directory,
      '--maxmemory-policy',
      'noeviction',
      '--auto-aof-rewrite-min-size',
      '256mb',
      '--stream-node-max-bytes',
      '512',
    ];
    const started = spawn('redis-server', [...options, ...args], { stdio: 'ignore' });
    child = started;
    for (let i = 0; i < 200; i++) {
      if (started.exitCode !== null) throw new Error(`redis-server stopped with ${started.exitCode}`);
      if (!(await isListening(port))) {
        await sleep(50);
        continue;
      }
      const probe = commandConnection(url);
      probe.on('error', () => {});
      try {
        await probe.connect();
        const info = await probe.info('server');
        if (info.includes(`process_id:${started.pid}\r`)) return;
      } catch {
        // not up yet
      } finally {
        probe.disconnect();
      }
      await sleep(50);
    }
    throw new Error('redis-server did not come up within 10 s');
  };
  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };

  await start();
  await client.connect();
  return {
    url,
    port,
    get pid() {
      return child?.pid ?? 0;
    },
    client,
    kill,
    freeze: () => {
      const frozen = child;
      frozen?.kill('SIGSTOP');
      return () => frozen?.kill('SIGCONT');
    },
    start,
    stop: async () => {
      client.disconnect();
      await kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A client of Redis that does not get through would keep the process for 2 s more. */
async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
