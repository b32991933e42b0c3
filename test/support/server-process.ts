import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** A program that a test has started and will end. */
export interface ServerProcess {
  readonly pid: number | undefined;
  exited(): boolean;
  /** The last lines that it printed, for error messages. */
  lastOutput(): string;
  /** Sends the signal and waits for the end; after 10 s it is killed. */
  stop(signal: NodeJS.Signals): Promise<void>;
}

const keptOutputBytes = 4096;

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
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  child.once('exit', () => process.removeListener('exit', killAtExit));

  const exited = (): boolean => child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
  return {
    pid: child.pid,
    exited,
    lastOutput: () => output,
    stop: async (signal) => {
      if (exited()) return;
      const end = once(child, 'exit');
      child.kill(signal);
      const force = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await end;
      clearTimeout(force);
    },
  };
}
