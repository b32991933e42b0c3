import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../core/clock.ts';
import { PosthornError } from '../core/errors.ts';
import { FairScheduler, type JobOwner, type ScheduledJob } from '../core/fair-scheduler.ts';
import { isAvailable, isAvailableAtOnce } from '../core/open-shares.ts';
import { wholePayloadBytes } from '../core/payload-sizes.ts';
import { payloadText } from '../core/payload-text.ts';
import { type PayloadFormat, readablePayload } from '../core/readable-payload.ts';
import type { FilterDefinition } from '../core/records.ts';
import type { QueryParameters } from '../core/sent-query.ts';
import {
  type Job,
  largeForm,
  type PayloadEvaluation,
  type Problem,
  type Reply,
  type SandboxForm,
  type SchemaProblem,
  sandboxLimits,
  type TransformOutput,
  type TransformType,
  unchecked,
  usualForm,
} from './jobs.ts';
import { type LargePayload, SandboxProcess } from './sandbox-process.ts';

const limits = {
  waitMs: 10_000,
  /** Processes that have had nothing to do for so long end. */
  idleMs: 60_000,
};

interface Waiting {
  /** Called at its start: a waiting job has no text of its payload. */
  job: () => Job;
  /** A payload that goes piece by piece before its job. */
  large: LargePayload | null;
  onStart: () => void;
  resolve: (reply: Reply) => void;
  reject: (error: unknown) => void;
  /** It waits no more. */
  cleanUp: () => void;
}

export interface SandboxOptions {
  clock: Clock;
  /** Limit of the installation: one with more than 1 MiB has processes for what has more than 1 MiB without its content coding, too. Default: 1 MiB. */
  maxPayloadBytes?: number;
  /** How many at most; they start when there is something to do. */
  processes: number;
  form?: SandboxForm;
}

/** The event that a transform sees. */
export interface TransformEvent {
  /** JSON text of everything but the payload. */
  description: string;
  payload: Buffer;
  /** Content type of the payload. Default: none, and it is read as it is. */
  format?: PayloadFormat | null;
}

/** Input of a job. `isLarge`: in the process for such payloads, which reads it by its format, if there is one. */
interface ReadPayload extends LargePayload {
  isLarge: boolean;
}

/** `format`: content type of the payload; absent: it is read as it is. */
interface PayloadOptions {
  format?: PayloadFormat | null;
  signal?: AbortSignal | undefined;
}

/**
 * Runs users' code (transforms, JSON Schemas) in processes of its own, with deadlines and memory limits. Organizations alternate, and so do the sources
 * and routes of each. Rejects with UNAVAILABLE when too much waits, and when no process starts or somebody else ends it. What has a payload above 1 MiB runs
 * in a process for such payloads alone, which has more memory and time: one job at a time. See docs/decisions/0010-sandbox-process.md.
 */
export class Sandbox {
  readonly #clock: Clock;
  readonly #form: SandboxForm;
  readonly #maxPayloadBytes: number;
  readonly #turns: FairScheduler<Waiting>;
  readonly #idle: SandboxProcess[];
  readonly #processes: readonly SandboxProcess[];
  #cancelIdle: (() => void) | null = null;
  #isClosed = false;
  #large: Sandbox | null = null;

  constructor({ clock, processes, maxPayloadBytes = wholePayloadBytes, form = usualForm }: SandboxOptions) {
    this.#maxPayloadBytes = maxPayloadBytes;
    this.#clock = clock;
    this.#form = form;
    this.#turns = new FairScheduler(processes, () => clock.now());
    this.#processes = Array.from({ length: processes }, () => new SandboxProcess(clock, form));
    this.#idle = [...this.#processes];
  }

  /** The output of a transform, null when the event is not to be delivered, or what went wrong. `signal`: nobody waits for the answer any more. */
  async transform(
    owner: JobOwner,
    { type, code }: { type: TransformType; code: string },
    { description, payload, format = null }: TransformEvent,
    signal?: AbortSignal,
  ): Promise<{ output: TransformOutput; problem?: undefined } | { output?: undefined; problem: Problem }> {
    const { read, problem } = this.#read(payload, format);
    if (problem !== null) return { problem: { message: problem, line: null, column: null } };
    const { isLarge } = read;
    const job = (text: string): Job => ({
      task: 'transform',
      organization: owner.organization,
      type,
      code,
      event: description,
      payload: text,
      isLarge,
    });
    const reply = await this.#runWith(owner, job, read, { signal });
    if (reply.type === 'output') return { output: reply.output };
    return { problem: problemOf(reply) };
  }

  /** Filter results of an event with a large payload, and the texts at some paths of it. `signal`: the result is no longer needed. */
  async evaluate(
    owner: JobOwner,
    asked: { filters: readonly FilterDefinition[]; headers: IncomingHttpHeaders; query: QueryParameters; fields: readonly string[] },
    payload: Buffer,
    { format = null, signal }: PayloadOptions = {},
  ): Promise<{ evaluation: PayloadEvaluation; problem?: undefined } | { evaluation?: undefined; problem: Problem }> {
    const filters = JSON.stringify(asked.filters);
    const job = (text: string): Job => ({ task: 'evaluate', ...asked, filters, payload: text });
    const reply = await this.#runWith(owner, job, { payload, format, isLarge: true }, { signal });
    return reply.type === 'evaluated' ? { evaluation: reply.evaluation } : { problem: problemOf(reply) };
  }

  /** Null when the code parses. */
  async checkTransform(organization: string, { type, code }: { type: TransformType; code: string }): Promise<Problem | null> {
    const reply = await this.#run({ organization }, () => ({ task: 'check-transform', type, code }));
    return reply.type === 'checked' ? null : problemOf(reply);
  }

  /** Null when the JSON text is a schema that compiles. */
  async checkSchema(organization: string, schema: string): Promise<Problem | null> {
    const reply = await this.#run({ organization }, () => ({ task: 'check-schema', schema }));
    return reply.type === 'checked' ? null : problemOf(reply);
  }

  /**
   * Violations of each schema by the payload, at most so many each; a check that cannot be finished is one, too. One job,
   * unless a schema breaks it off: then one for each, one after another, while there is time: all of them compute for at most
   * `validationMs` and the deadline of one job. `signal`: nobody waits for the answer any more.
   */
  async validate(
    owner: JobOwner,
    schemas: readonly string[],
    payload: Buffer,
    { maxProblems, format = null, signal }: { maxProblems: number } & PayloadOptions,
  ): Promise<SchemaProblem[][]> {
    const { read } = this.#read(payload, format);
    let computedMs = 0;
    const check = async (some: readonly string[]): Promise<Reply> => {
      let startedAtMs = this.#clock.now();
      const job = (text: string): Job => ({ task: 'validate', schemas: some, payload: text, maxProblems });
      const onStart = (): void => {
        startedAtMs = this.#clock.now();
      };
      const reply = await this.#runWith(owner, job, read, { signal, onStart });
      computedMs += this.#clock.now() - startedAtMs;
      return reply;
    };
    const together = await check(schemas);
    if (together.type === 'validated' || schemas.length === 1) return checkedProblems(together);
    const problems: SchemaProblem[][] = [];
    for (const schema of schemas) {
      if (computedMs < sandboxLimits.validationMs) problems.push(...checkedProblems(await check([schema])));
      else problems.push([unchecked(`the schemas took ${sandboxLimits.validationMs} ms before it`)]);
    }
    return problems;
  }

  /** Ends the processes; what is under way fails. */
  close(): void {
    this.#isClosed = true;
    this.#large?.close();
    this.#cancelIdle?.();
    this.#cancelIdle = null;
    for (const { reject, cleanUp } of this.#turns.clear()) {
      cleanUp();
      reject(ending());
    }
    for (const process of this.#processes) process.close();
  }

  /** A small payload is made readable here, a large one, and one that becomes large by it, in the process that parses it. */
  #read(payload: Buffer, format: PayloadFormat | null): { read: ReadPayload; problem: string | null } {
    if (payload.length > wholePayloadBytes || format === null)
      return { read: { payload, format, isLarge: payload.length > wholePayloadBytes }, problem: null };
    const { bytes, problem, isTooLarge = false } = readablePayload(payload, format);
    if (isTooLarge && this.#maxPayloadBytes > wholePayloadBytes) return { read: { payload, format, isLarge: true }, problem: null };
    return { read: { payload: bytes, format: null, isLarge: bytes.length > wholePayloadBytes }, problem };
  }

  /** Runs a job that reads a payload, the large ones elsewhere. */
  #runWith(
    owner: JobOwner,
    job: (text: string) => Job,
    { payload, format, isLarge }: ReadPayload,
    options: { signal?: AbortSignal | undefined; onStart?: () => void },
  ): Promise<Reply> {
    const bytes = payload.length;
    if (!isLarge) return this.#run(owner, () => job(payloadText(payload)), { bytes, ...options });
    if (this.#isClosed) return Promise.reject(ending());
    this.#large ??= new Sandbox({ clock: this.#clock, processes: 1, form: largeForm });
    return this.#large.#run(owner, () => job(''), { bytes, large: { payload, format }, ...options });
  }

  #run(
    owner: JobOwner,
    job: () => Job,
    {
      bytes = 0,
      large = null,
      signal,
      onStart = () => {},
    }: { bytes?: number; large?: LargePayload | null; signal?: AbortSignal | undefined; onStart?: () => void } = {},
  ): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw ending();
      if (signal?.aborted === true) throw givenUp();
      if (this.#isFull(owner, bytes)) throw new PosthornError('UNAVAILABLE', 'too many transforms wait', { retryAfterSeconds: 1 });
      const waiting: Waiting = { job, large, onStart, resolve, reject, cleanUp: () => {} };
      const drop = (error: PosthornError): void => {
        if (!this.#turns.remove(owner, waiting)) return;
        waiting.cleanUp();
        reject(error);
      };
      const cancel = this.#clock.after(limits.waitMs, () =>
        drop(new PosthornError('UNAVAILABLE', 'the transform was not started in time', { retryAfterSeconds: 1 })),
      );
      const aborted = (): void => drop(givenUp());
      signal?.addEventListener('abort', aborted);
      waiting.cleanUp = () => {
        cancel();
        signal?.removeEventListener('abort', aborted);
      };
      this.#turns.add(owner, waiting, bytes);
      this.#begin();
    });
  }

  /** Whether no more may wait for the owner: organizations leave some of the room to others, and so do the parts of an organization. */
  #isFull(owner: JobOwner, bytes: number): boolean {
    const { waitingJobs, waitingOfOrganization, waitingBytes, waitingBytesOfOrganization } = this.#form;
    const turns = this.#turns;
    const own = turns.waitingOf(owner.organization);
    const ownBytes = turns.waitingBytesOf(owner.organization);
    if (own + 1 > waitingOfOrganization || ownBytes + bytes > waitingBytesOfOrganization) return true;
    const isLeftByParts =
      owner.part === undefined ||
      (isAvailable({ all: waitingOfOrganization, open: own }, 1, turns.waitingOfPart(owner)) &&
        isAvailableAtOnce({ all: waitingBytesOfOrganization, open: ownBytes }, bytes, turns.waitingBytesOfPart(owner)));
    return !(
      isLeftByParts &&
      isAvailable({ all: waitingJobs, open: turns.waiting }, 1, own) &&
      isAvailableAtOnce({ all: waitingBytes, open: turns.waitingBytes }, bytes, ownBytes)
    );
  }

  #begin(): void {
    if (this.#isClosed) return;
    this.#cancelIdle?.();
    this.#cancelIdle = null;
    for (let process = this.#idle.pop(); process !== undefined; process = this.#idle.pop()) {
      const turn = this.#turns.next();
      if (turn === null) {
        this.#idle.push(process);
        break;
      }
      void this.#perform(process, turn);
    }
    if (this.#idle.length === this.#processes.length) this.#cancelIdle = this.#clock.after(limits.idleMs, () => this.#endIdle());
  }

  async #perform(process: SandboxProcess, { item, start, end }: ScheduledJob<Waiting>): Promise<void> {
    item.cleanUp();
    const begin = (): void => {
      start();
      item.onStart();
    };
    try {
      item.resolve(await process.run(item.job(), begin, item.large));
    } catch (error) {
      item.reject(new PosthornError('UNAVAILABLE', 'the sandbox does not answer', { retryAfterSeconds: 1, cause: error }));
    }
    end();
    // The process that was used last is used first, so that others stay unused when one is enough.
    this.#idle.push(process);
    this.#begin();
  }

  #endIdle(): void {
    for (const process of this.#idle) process.close();
  }
}

function ending(): PosthornError {
  return new PosthornError('UNAVAILABLE', 'this process ends', { retryAfterSeconds: 1 });
}

function givenUp(): PosthornError {
  return new PosthornError('UNAVAILABLE', 'nobody waits for the answer', { retryAfterSeconds: 1 });
}

function checkedProblems(reply: Reply): SchemaProblem[][] {
  return reply.type === 'validated' ? reply.problems : [[unchecked(problemOf(reply).message)]];
}

function problemOf(reply: Reply): Problem {
  if (reply.type !== 'failed') throw new PosthornError('INTERNAL', `the sandbox answered ${reply.type}`);
  return reply.problem;
}
