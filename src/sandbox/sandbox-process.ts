import { type ChildProcess, fork } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../core/clock.ts';
import type { PayloadFormat } from '../core/readable-payload.ts';
import { failed, type Job, type LargeJob, type PayloadPiece, type Reply, type SandboxForm } from './jobs.ts';
import { processCpuMs } from './process-cpu.ts';

/** How a process ends for which the code is to blame: V8 aborts when the heap is full. */
const crashes: ReadonlySet<string> = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV', 'SIGBUS']);
const startDeadlineMs = 20_000;
/** For code that the machine does not let compute; then it is aborted, without blame. */
const starvedDeadlines = 3;

/** Node runs the TypeScript of the source tree directly; beside a built module is a built one. */
const body = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './process-body.ts' : './process-body.js', import.meta.url));
const source = fileURLToPath(new URL('../', import.meta.url));
const packages = realpathSync(createRequire(import.meta.url).resolve('jsonata')).replace(/(?<=[\\/]node_modules[\\/]).*$/s, '');

/** Chunks that precede its job, and their content type; null: it is read as it is. */
export interface LargePayload {
  payload: Buffer;
  format: PayloadFormat | null;
}

/** A piece of a payload that goes before its job: about 1 ms of work. */
const pieceBytes = 1_048_576;

/** Nothing of the environment, no files but the program's own, no processes of its own. */
const execArgv = (heapMb: number): string[] => [
  '--permission',
  '--allow-worker',
  ...[source, packages, `${source}../package.json`].map((path) => `--allow-fs-read=${path}`),
  '--disable-proto=delete',
  `--max-old-space-size=${heapMb}`,
  '--max-semi-space-size=8',
  '--no-warnings',
];

/**
 * One process, which does one job at a time. A job that is not done at its deadline, or that uses up the memory, ends the
 * process; the next job starts another. It is no thread, because an allocation that a thread's limits do not allow ends all threads.
 */
export class SandboxProcess {
  readonly #clock: Clock;
  readonly #form: SandboxForm;
  #starting: Promise<ChildProcess> | null = null;
  #current: ChildProcess | null = null;

  constructor(clock: Clock, form: SandboxForm) {
    this.#clock = clock;
    this.#form = form;
  }

  /**
   * Rejects when no process could be started, when somebody else has ended it, or when the machine gave it no time to compute; what the
   * code does wrong is a reply. `onStart`: called when the job begins. `large`: its payload, of which the job then has nothing.
   */
  async run(job: Job, onStart: () => void, large: LargePayload | null = null): Promise<Reply> {
    this.#starting ??= this.#start();
    let child: ChildProcess;
    try {
      child = await this.#starting;
    } catch (error) {
      this.#starting = null;
      throw error;
    }
    onStart();
    return await this.#exchange(child, job, large);
  }

  close(): void {
    const child = this.#current;
    if (child === null) return;
    this.#forget(child);
    child.kill('SIGKILL');
  }

  #start(): Promise<ChildProcess> {
    const child = fork(body, {
      execArgv: execArgv(this.#form.heapMb),
      env: {},
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      serialization: 'advanced',
    });
    this.#current = child;
    // It ends with its channel, and does not keep this process alive.
    child.unref();
    child.channel?.unref();
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => {
        cancel();
        child.kill('SIGKILL');
        reject(error);
      };
      const exited = (): void => fail(new Error('the sandbox ended while it started'));
      const cancel = this.#clock.after(startDeadlineMs, () => fail(new Error('the sandbox did not start in time')));
      child.on('error', fail);
      child.once('exit', exited);
      child.once('message', () => {
        cancel();
        child.off('error', fail);
        child.off('exit', exited);
        // Between two jobs nobody listens, and an error without a listener would end this process.
        child.on('error', () => this.#forget(child));
        child.on('exit', () => this.#forget(child));
        resolve(child);
      });
    });
  }

  #exchange(child: ChildProcess, job: Job, large: LargePayload | null): Promise<Reply> {
    const { computingMs, hardDeadlineMs } = this.#form;
    return new Promise((resolve, reject) => {
      const cleanUp = (): void => {
        cancel();
        child.off('message', received);
        child.off('exit', exited);
      };
      const end = (reply: Reply): void => {
        cleanUp();
        resolve(reply);
      };
      const fail = (): void => {
        cleanUp();
        this.#forget(child);
        child.kill('SIGKILL');
        reject(new Error('the sandbox ended'));
      };
      // The body of the process is our own; what it sends is a reply.
      const received = (reply: unknown): void => end(reply as Reply);
      const stop = (message: string): void => {
        this.#forget(child);
        end(failed(message));
        child.kill('SIGKILL');
      };
      const exited = (_code: number | null, signal: NodeJS.Signals | null): void =>
        signal !== null && crashes.has(signal) ? stop('more memory than a transform may use') : fail();
      const begunAt = cpuMsOf(child);
      let deadlines = 0;
      const atDeadline = (): void => {
        const at = cpuMsOf(child);
        deadlines++;
        const isStarved = at !== null && begunAt !== null && at - begunAt < computingMs;
        if (!isStarved) stop(`stopped after ${deadlines * hardDeadlineMs} ms`);
        else if (deadlines === starvedDeadlines) fail();
        else cancel = this.#clock.after(hardDeadlineMs, atDeadline);
      };
      let cancel = this.#clock.after(hardDeadlineMs, atDeadline);
      child.on('message', received);
      child.once('exit', exited);
      const sent = (error: Error | null): void => {
        if (error !== null) fail();
      };
      if (large === null) child.send(job, sent);
      else {
        const message: LargeJob = { job, format: large.format };
        sendPieces(child, large.payload).then(() => child.send(message, sent), fail);
      }
    });
  }

  /** Unless another one has replaced it. */
  #forget(child: ChildProcess): void {
    if (this.#current !== child) return;
    this.#starting = null;
    this.#current = null;
  }
}

/** One after the other, each in a turn of the event loop of its own. */
async function sendPieces(child: ChildProcess, payload: Buffer): Promise<void> {
  for (let first = 0; first < payload.length; first += pieceBytes) {
    const message: PayloadPiece = { piece: payload.subarray(first, first + pieceBytes) };
    await new Promise<void>((resolve, reject) => {
      child.send(message, (error) => (error === null ? setImmediate(resolve) : reject(error)));
    });
  }
}

const cpuMsOf = ({ pid }: ChildProcess): number | null => (pid === undefined ? null : processCpuMs(pid));
