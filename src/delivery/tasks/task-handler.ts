import type { TaskKind } from '../../data/tasks/task-kind.ts';

export interface TaskContext {
  /** API id of the organization that the task belongs to: what the handler reads must be of it. */
  org: string;
  /** Time until the caller no longer waits for the result. */
  remainingMs: number;
  /** Aborts then, and when the worker stops. */
  signal: AbortSignal;
}

/** Work of a worker for one kind of task. */
export interface TaskHandler {
  kind: string;
  run(input: unknown, context: TaskContext): Promise<unknown>;
}

/**
 * The handler of a kind. `handle` resolves also when its target fails; a `PosthornError` that it throws is what the caller's call
 * throws, anything else is a defect and INTERNAL to the caller. It must end soon after `signal` aborts.
 */
export function taskHandler<Input, Result>(
  { name, input }: TaskKind<Input, Result>,
  handle: (input: Input, context: TaskContext) => Promise<Result>,
): TaskHandler {
  return { kind: name, run: async (raw, context) => handle(input.parse(raw), context) };
}
