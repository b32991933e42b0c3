import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, StopWaiting } from './eventually.ts';
import { onFreePort } from './ports.ts';

export const programSource = new URL('../../src/cmd/posthorn.ts', import.meta.url).pathname;
/** `hack/test` has bundled the program once. A suite that runs alone starts the source. */
const script = process.env['POSTHORN_TEST_PROGRAM'] ?? programSource;

/** Standalone that is ready. */
export interface Standalone {
  program: Program;
  /** `http://127.0.0.1:<port>` */
  url: string;
  port: number;
  /** The API key that it has made and printed; empty where one was given or kept. */
  key: string;
  stop(): Promise<void>;
}

export interface StandaloneOptions {
  /** What follows `standalone`. */
  args?: readonly string[];
  environment?: Record<string, string>;
  /** As of `startProgram`. */
  file?: string;
}

/** Starts standalone on a free port and waits until it is ready. Without POSTHORN_DATA_DIR it keeps its data in a directory that `stop` removes. */
export async function startStandalone({ args = [], environment = {}, file = script }: StandaloneOptions = {}): Promise<Standalone> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-standalone-'));
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  try {
    return await onFreePort(async (port) => {
      const program = startProgram(
        ['standalone', ...args],
        { POSTHORN_PORT: String(port), POSTHORN_DATA_DIR: directory, ...environment },
        file,
      );
      const stop = async (): Promise<void> => {
        await program.stop();
        remove();
      };
      try {
        const [, , key = ''] = await program.waitForOutput(/^posthorn ready (\S+)(?: key (\S+))?$/m, 60_000);
        return { program, url: `http://127.0.0.1:${port}`, port, key, stop };
      } catch (error) {
        await program.stop();
        throw error;
      }
    });
  } catch (error) {
    remove();
    throw error;
  }
}

/** The program as a process, as `hack/posthorn` starts it. */
export interface Program {
  readonly pid: number;
  /** Everything that it has written so far. */
  output(): string;
  /** Waits until its output matches; throws when it ends before. */
  waitForOutput(pattern: RegExp, deadlineMs?: number): Promise<RegExpExecArray>;
  signal(signal: NodeJS.Signals): void;
  /** Exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** Ends it, at once when it does not end within ten seconds, and what it has left behind if it was killed. */
  stop(): Promise<void>;
}

/** With which the image starts Node. */
export function imageArguments(): string[] {
  return (JSON.parse(ofDockerfile(/^ENTRYPOINT (\[.*\])$/m)) as string[]).filter((argument) => argument.startsWith('--'));
}

export function imageEnvironment(): Record<string, string> {
  const pairs = ofDockerfile(/^ENV (.*)$/m).split(' ');
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
}

function ofDockerfile(pattern: RegExp): string {
  const found = pattern.exec(readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8'))?.[1];
  if (found === undefined) throw new Error(`nothing in the Dockerfile is like ${pattern}`);
  return found;
}

/** Child processes of `parent`, whose command ends with `command`. */
export function childPids(parent: number, command = ''): number[] {
  return childrenOf(parent)
    .filter(({ identity }) => identity.endsWith(command))
    .map(({ pid }) => pid);
}

/** `identity`: start time and command. The system gives the id of a process that has ended to another one. */
interface Child {
  pid: number;
  identity: string;
}

function childrenOf(parent: number): Child[] {
  return parent > 0 ? listed(['--ppid', String(parent)]) : [];
}

function listed(selection: readonly string[]): Child[] {
  const { stdout } = spawnSync('ps', ['-ww', '-o', 'pid=,lstart=,args=', ...selection], { encoding: 'utf8' });
  return stdout
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(.*\S)/.exec(line))
    .flatMap((found) => (found === null ? [] : [{ pid: Number(found[1]), identity: found[2] ?? '' }]));
}

/** Loading the program fills the young generation many times over. With room in it, a start takes less processor time. */
const roomForYoungObjects = ['--min-semi-space-size=32', '--max-semi-space-size=64'];

/**
 * `file`: what is run; default: the bundle of the program, or its source. The built program runs as in the image. It is killed when the test process ends
 * without having stopped it.
 */
export function startProgram(args: readonly string[], environment: Record<string, string> = {}, file = script): Program {
  const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env;
  const built = file.endsWith('.js');
  const flags = built ? imageArguments() : environment['NODE_OPTIONS'] === undefined ? roomForYoungObjects : [];
  const child: ChildProcess = spawn(process.execPath, [...flags, file, ...args], {
    env: { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, ...(built && imageEnvironment()), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout?.on('data', (chunk) => (output += chunk));
  child.stderr?.on('data', (chunk) => (output += chunk));
  // With its last words, which may come after its end.
  const ended = once(child, 'close').then(([code, signal]: (number | NodeJS.Signals)[]) => code ?? signal ?? 0);
  let closed = false;
  child.once('close', () => (closed = true));
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  /** What a killed program leaves running: the redis-server of standalone. */
  let left: Child[] = [];
  const kill = (): void => {
    left = childrenOf(child.pid ?? 0);
    child.kill('SIGKILL');
  };
  const killLeft = (): void => {
    for (const { pid, identity } of left.splice(0))
      if (listed(['-p', String(pid)]).some((now) => now.identity === identity)) killIfAlive(pid);
  };
  const killAtExit = (): void => {
    kill();
    killLeft();
  };
  process.once('exit', killAtExit);
  child.once('exit', () => process.removeListener('exit', killAtExit));
  return {
    pid: child.pid ?? 0,
    output: () => output,
    waitForOutput: (pattern, deadlineMs = 60_000) =>
      eventually(`output like ${pattern} (so far: ${output.slice(-2000)})`, deadlineMs, () => {
        const match = pattern.exec(output);
        if (match === null && closed) throw new StopWaiting(`the program ended: ${output}`);
        return match ?? undefined;
      }),
    signal: (signal) => void (signal === 'SIGKILL' ? kill() : child.kill(signal)),
    ended,
    stop: async () => {
      if (!hasEnded()) {
        child.kill('SIGTERM');
        const timer = setTimeout(kill, 10_000);
        await once(child, 'exit');
        clearTimeout(timer);
      }
      killLeft();
      await ended;
    },
  };
}

function killIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
