/** Messages to and from a process of the sandbox. Only texts and numbers cross; a payload is there without a byte order mark. */

import type { IncomingHttpHeaders } from 'node:http';
import type { PayloadFormat } from '../core/readable-payload.ts';
import type { QueryParameters } from '../core/sent-query.ts';

export type TransformType = 'jsonata' | 'javascript' | 'liquid';

export type Job =
  | { task: 'transform'; organization: string; type: TransformType; code: string; event: string; payload: string; isLarge: boolean }
  | { task: 'check-transform'; type: TransformType; code: string }
  /** `schemas` and `payload` are JSON texts; `maxProblems`: the check against a schema ends after so many. */
  | { task: 'validate'; schemas: readonly string[]; payload: string; maxProblems: number }
  | { task: 'check-schema'; schema: string }
  /** The evaluation of a large payload's event: its filters, and the texts at some paths. */
  | {
      task: 'evaluate';
      /** JSON text of the definitions: between processes an `ExactNumber` would be an object. */
      filters: string;
      headers: IncomingHttpHeaders;
      query: QueryParameters;
      fields: readonly string[];
      payload: string;
    };

/** Error of code or a schema, with its position, counted from 1. */
export interface Problem {
  message: string;
  line: number | null;
  column: number | null;
}

/** Output of a transform for an event, or its error; null: the event is not to be delivered. */
export type TransformOutput = { contentType: string; body: string; warning: string | null } | null;

/** One verdict for each filter, in their order: whether the event meets it, and whether a pattern was not tried. `fields`: the texts that are there, by path. */
export interface PayloadEvaluation {
  verdicts: { isMet: boolean; decidedBy: number | null; isUntried: boolean }[];
  fields: Record<string, string>;
}

export interface SchemaProblem {
  /** JSON Pointer into the payload; empty: the payload itself. */
  path: string;
  message: string;
}

/** Precedes a job with a large payload: that, in chunks, instead of the text in the job. */
export interface PayloadPiece {
  piece: Uint8Array;
}

/** A job with a payload that precedes it, and its content type; null: it is read as it is. */
export interface LargeJob {
  job: Job;
  format: PayloadFormat | null;
}

export type Reply =
  | { type: 'output'; output: TransformOutput }
  | { type: 'checked' }
  | { type: 'evaluated'; evaluation: PayloadEvaluation }
  /** One list for each schema, in their order. */
  | { type: 'validated'; problems: SchemaProblem[][] }
  /** The code or the schema is to blame. */
  | { type: 'failed'; problem: Problem };

export function unchecked(reason: string): SchemaProblem {
  return { path: '', message: `cannot be checked: ${shortened(reason)}` };
}

export const sandboxLimits = {
  /** Computing time: JavaScript and Liquid are stopped by themselves; anything is aborted after `hardDeadlineMs` unless the machine has not let it compute. */
  computingMs: 1000,
  hardDeadlineMs: 2000,
  /** Time for the schemas of one event: those that have not begun by then count as unchecked. */
  validationMs: 5000,
  javascriptMemoryBytes: 16_777_216,
  codeLength: 65_536,
  outputBytes: 1_048_576,
  problemLength: 500,
};

/** Limits of one process, and of the queue for the processes of a sandbox. */
export interface SandboxForm {
  heapMb: number;
  /** Memory of the interpreter of JavaScript. */
  javascriptMemoryBytes: number;
  computingMs: number;
  hardDeadlineMs: number;
  waitingJobs: number;
  waitingOfOrganization: number;
  /** Bytes of payloads that wait. */
  waitingBytes: number;
  waitingBytesOfOrganization: number;
}

export const usualForm: SandboxForm = {
  heapMb: 96,
  javascriptMemoryBytes: 16_777_216,
  computingMs: sandboxLimits.computingMs,
  hardDeadlineMs: sandboxLimits.hardDeadlineMs,
  waitingJobs: 2048,
  waitingOfOrganization: 683,
  waitingBytes: 268_435_456,
  waitingBytesOfOrganization: 90_177_536,
};

/** For payloads above 1 MiB. The text of the largest JSON that is usual has up to 20 times its bytes as a tree. */
export const largeForm: SandboxForm = {
  heapMb: 640,
  javascriptMemoryBytes: 268_435_456,
  computingMs: 4000,
  hardDeadlineMs: 5000,
  waitingJobs: 128,
  waitingOfOrganization: 43,
  waitingBytes: 134_217_728,
  waitingBytesOfOrganization: 90_177_536,
};

export function failed(message: string, line: number | null = null, column: number | null = null): Reply {
  return { type: 'failed', problem: { message: shortened(message), line, column } };
}

function shortened(message: string): string {
  return message.length > sandboxLimits.problemLength ? `${message.slice(0, sandboxLimits.problemLength - 1)}…` : message;
}
