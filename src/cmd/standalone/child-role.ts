import { type ChildProcess, fork } from 'node:child_process';
import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { Component } from '../../runtime/supervisor.ts';
import { fetchOps } from '../fetch-ops.ts';
import { missingOf } from '../readiness.ts';

/** Messages of a role's process to the standalone that started it: its address, and what it lacks whenever that changes. */
const childMessage = z.union([z.object({ opsPort: z.int() }), z.object({ missing: z.string().nullable() })]);

/** Interval of its liveness checks. */
const pollMs = 5000;
const requestDeadlineMs = 3000;

/** A role of this program as a process of its own. */
export class ChildRole implements Component {
  readonly name: string;
  readonly #program: string;
  readonly #role: string;
  readonly #environment: () => Record<string, string | undefined>;
  readonly #clock: Clock;
  readonly #stopDeadlineMs: number;
  readonly #onState: () => void;
  #opsUrl: string | null = null;
  #state: { ok: boolean; detail?: string } = { ok: false, detail: 'starting' };

  constructor(options: {
    name: string;
    role: string;
    program: string;
    environment: () => Record<string, string | undefined>;
    clock: Clock;
    stopDeadlineMs: number;
    /** Called when its state has changed. */
    onState: () => void;
  }) {
    this.name = options.name;
    this.#role = options.role;
    this.#program = options.program;
    this.#environment = options.environment;
    this.#clock = options.clock;
    this.#stopDeadlineMs = options.stopDeadlineMs;
    this.#onState = options.onState;
  }

  /** Its report, or that it does not answer. */
  get state(): { ok: boolean; detail?: string } {
    return this.#state;
  }

  /** The text of its `/metrics`; empty while it does not answer. */
  async metrics(): Promise<string> {
    if (this.#opsUrl === null) return '';
    try {
      const { status, text } = await fetchOps(`${this.#opsUrl}/metrics`, requestDeadlineMs);
      return status === 200 ? text : '';
    } catch {
      return '';
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    // Its logs go to standard error, which leaves standard output to the ready line. Detached, so that Ctrl-C in a
    // terminal reaches standalone alone, which then stops everything in order.
    const child = fork(this.#program, [this.#role], {
      env: { ...this.#environment(), POSTHORN_OPS_PORT: '0' },
      stdio: ['ignore', 2, 2, 'ipc'],
      detached: true,
    });
    const ended = Promise.withResolvers<string>();
    child.once('error', (error) => ended.resolve(error.message));
    child.once('exit', (code, killedBy) => ended.resolve(`stopped with ${killedBy ?? code}`));
    child.on('message', (message) => {
      const parsed = childMessage.safeParse(message);
      if (!parsed.success) return;
      if ('opsPort' in parsed.data) this.#opsUrl = `http://127.0.0.1:${parsed.data.opsPort}`;
      else this.#become(parsed.data.missing);
    });
    const stop = (): void => this.#stop(child, ended.promise);
    signal.addEventListener('abort', stop, { once: true });
    const watching = new AbortController();
    const watched = this.#watch(watching.signal);
    const reason = await ended.promise;
    watching.abort();
    await watched;
    signal.removeEventListener('abort', stop);
    this.#opsUrl = null;
    this.#become(reason);
    if (!signal.aborted) throw new PosthornError('UNAVAILABLE', reason);
  }

  #stop(child: ChildProcess, ended: Promise<unknown>): void {
    child.kill('SIGTERM');
    const cancel = this.#clock.after(this.#stopDeadlineMs, () => child.kill('SIGKILL'));
    void ended.then(cancel);
  }

  /** A silent one may hang. */
  async #watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(pollMs, signal);
      if (this.#opsUrl !== null && !signal.aborted) this.#become(await missingIn(this.#opsUrl));
    }
  }

  #become(missing: string | null): void {
    this.#state = missing === null ? { ok: true } : { ok: false, detail: missing };
    this.#onState();
  }
}

const report = z.object({ checks: z.record(z.string(), z.object({ ok: z.boolean(), detail: z.string().optional() })) });

/** Failing checks of a process, by its `/readyz`; null: none. */
async function missingIn(opsUrl: string): Promise<string | null> {
  try {
    const { text } = await fetchOps(`${opsUrl}/readyz`, requestDeadlineMs);
    return missingOf(report.parse(parsePlainJson(text)).checks);
  } catch {
    return 'does not answer';
  }
}
