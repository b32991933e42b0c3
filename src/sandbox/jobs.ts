/** What goes to a process of the sandbox and what comes back. Only texts and numbers cross; a payload is there without a byte order mark. */

export type TransformType = 'jsonata' | 'javascript' | 'liquid';

export type Job =
  | { task: 'transform'; organization: string; type: TransformType; code: string; event: string; payload: string }
  | { task: 'check-transform'; type: TransformType; code: string }
  /** `schemas` and `payload` are JSON texts; `mostProblems`: the check against a schema ends after so many. */
  | { task: 'validate'; schemas: readonly string[]; payload: string; mostProblems: number }
  | { task: 'check-schema'; schema: string };

/** What is wrong with code or a schema, and where, counted from 1. */
export interface Problem {
  message: string;
  line: number | null;
  column: number | null;
}

/** What a transform makes of an event; null: the event is not to be delivered. */
export type TransformOutput = { contentType: string; body: string } | null;

export interface SchemaProblem {
  /** JSON Pointer into the payload; empty: the payload itself. */
  path: string;
  message: string;
}

export type Reply =
  | { type: 'output'; output: TransformOutput }
  | { type: 'checked' }
  /** One list for each schema, in their order. */
  | { type: 'validated'; problems: SchemaProblem[][] }
  /** The code or the schema is to blame. */
  | { type: 'failed'; problem: Problem };

export function unchecked(reason: string): SchemaProblem {
  return { path: '', message: `cannot be checked: ${shortened(reason)}` };
}

export const sandboxLimits = {
  /** Of computing: JavaScript and Liquid are stopped by themselves, and anything is broken off after `hardDeadlineMs` unless the machine has not let it compute. */
  computingMs: 1000,
  hardDeadlineMs: 2000,
  /** Of the schemas of one event: those that have not begun by then count as unchecked. */
  validationMs: 5000,
  javascriptMemoryBytes: 16_777_216,
  codeLength: 65_536,
  outputBytes: 1_048_576,
  problemLength: 500,
};

export function failed(message: string, line: number | null = null, column: number | null = null): Reply {
  return { type: 'failed', problem: { message: shortened(message), line, column } };
}

function shortened(message: string): string {
  return message.length > sandboxLimits.problemLength ? `${message.slice(0, sandboxLimits.problemLength - 1)}…` : message;
}
