import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, StopWaiting } from './eventually.ts';

/** A program that a test has started and will end. */
export interface ServerProcess {
  readonly pid: number | undefined;
  exited(): boolean;
  /** The last lines that it printed, for error messages. */
  lastOutput(): string;
  signal(signal: NodeJS.Signals): void;
  /** Sends the signal and waits for the end; after 10 s it is killed. */
  stop(signal: NodeJS.Signals): Promise<void>;
  /**
   * Waits until it is this process, and not another one, that listens on the port (null: it has none), and `isUp`. Throws what it printed last as
   * soon as it ends; ends it and throws when it is not up after the deadline.
   */
  untilUp(port: number | null, isUp?: () => Promise<boolean>, deadlineMs?: number): Promise<void>;
}

const keptOutputBytes = 4096;
/** Its last words may come after its end, or never where a child of its own holds its output. */
const lastWordsMs = 1000;

/** Starts a program; it is killed when the test process ends without having stopped it. */
export function spawnServer(command: string, args: string[], cwd: string, environment: Record<string, string> = {}): ServerProcess {
  const child: ChildProcess = spawn(command, args, { cwd, env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString('utf8')).slice(-keptOutputBytes);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  child.on('error', (error) => keep(Buffer.from(error.message)));
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  child.once('exit', () => process.removeListener('exit', killAtExit));

  const exited = (): boolean => child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
  const stop: ServerProcess['stop'] = async (signal) => {
    if (exited()) return;
    const end = once(child, 'exit');
    child.kill(signal);
    const force = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await end;
    clearTimeout(force);
  };
  const untilUp: ServerProcess['untilUp'] = async (port, isUp = async () => true, deadlineMs = 90_000) => {
    try {
      await eventually(`${command} to be up`, deadlineMs, async () => {
        if (!exited()) return (port === null || (await listens(child.pid ?? 0, port))) && (await isUp());
        await Promise.race([closed, sleep(lastWordsMs, undefined, { ref: false })]);
        throw new StopWaiting(`${command} has ended: ${output}`);
      });
    } catch (error) {
      await stop('SIGKILL');
      throw error;
    }
  };
  return {
    pid: child.pid,
    exited,
    lastOutput: () => output,
    signal: (signal) => void child.kill(signal),
    stop,
    untilUp,
  };
}

/** Where the system has no /proc, whether any process does. The table of all sockets is long: it is read only once the port accepts a connection. */
async function listens(pid: number, port: number): Promise<boolean> {
  if (!(await accepts(port))) return false;
  if (!existsSync('/proc/self/net/tcp')) return true;
  const listening = new RegExp(`:${port.toString(16).toUpperCase().padStart(4, '0')} [0-9A-F]+:0000 0A( +\\S+){5} +(\\d+)`);
  const lines = ['tcp', 'tcp6'].flatMap((table) => readFileSync(`/proc/${pid}/net/${table}`, 'latin1').split('\n'));
  const sockets = lines.flatMap((line) => listening.exec(line)?.[2] ?? []).map((inode) => `socket:[${inode}]`);
  return readdirSync(`/proc/${pid}/fd`).some((descriptor) => sockets.includes(linkOf(`/proc/${pid}/fd/${descriptor}`)));
}

/** It may be closed meanwhile. */
function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}
