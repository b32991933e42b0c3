import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commandConnection } from '../../src/redis/connection.ts';
import { onFreePort } from './ports.ts';
import { type ServerProcess, spawnServer } from './server-process.ts';

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Id of the process that runs now. */
  readonly pid: number;
  /** A connected client; closed by `stop`. */
  readonly client: ReturnType<typeof commandConnection>;
  /** Ends the process; `SIGKILL` to simulate a crash. The data directory stays, so that `start` finds the data again. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Freezes the process: its connections stay, and nothing is answered. Returns the resume function. */
  freeze(): () => void;
  /**
   * Starts the process again after `kill`, on the same port and data. As standalone and the chart do, it removes a script that the kill cut off before anybody
   * can connect (docs/operations.md, A Redis that is killed in the middle of a write).
   */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** A machine that is blocked for a second or two fails no test. */
const commandTimeoutMs = 10_000;

/** A real redis-server of this test's own: free port, own directory, noeviction; `args` are further options. */
export async function startRedis(args: string[] = ['--save', '', '--appendonly', 'no']): Promise<RedisServer> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-redis-'));
  const options = ['--bind', '127.0.0.1', '--dir', directory, '--maxmemory-policy', 'noeviction'];
  const sizes = ['--auto-aof-rewrite-min-size', '256mb', '--stream-node-max-bytes', '512'];
  const spawnOn = (port: number, ...more: string[]): ServerProcess =>
    spawnServer('redis-server', ['--port', String(port), ...options, ...sizes, ...args, ...more], directory);
  const startOn = async (port: number): Promise<ServerProcess> => {
    const server = spawnOn(port);
    await server.untilUp(port, () => isReady(`redis://127.0.0.1:${port}/0`));
    return server;
  };
  const removeCutScript = async (): Promise<void> => {
    const socket = join(directory, 'start.sock');
    const server = spawnOn(0, '--unixsocket', socket);
    await server.untilUp(null, () => isReady(socket));
    await server.stop('SIGTERM');
  };
  let { server, port } = await onFreePort(async (port) => ({ port, server: await startOn(port) }));
  const url = `redis://127.0.0.1:${port}/0`;
  const client = commandConnection(url, { commandTimeoutMs });
  client.on('error', () => {});
  await client.connect();
  return {
    url,
    port,
    get pid() {
      return server.pid ?? 0;
    },
    client,
    kill: (signal) => server.stop(signal),
    freeze: () => {
      const frozen = server;
      frozen.signal('SIGSTOP');
      return () => frozen.signal('SIGCONT');
    },
    start: async () => {
      if (hasAppendOnlyFile(args)) await removeCutScript();
      server = await startOn(port);
    },
    stop: async () => {
      client.disconnect();
      await server.stop('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function hasAppendOnlyFile(args: readonly string[]): boolean {
  return args[args.indexOf('--appendonly') + 1] === 'yes';
}

/** Once it has read its data. */
async function isReady(url: string): Promise<boolean> {
  const probe = commandConnection(url);
  probe.on('error', () => {});
  try {
    await probe.connect();
    return true;
  } finally {
    probe.disconnect();
  }
}
