import { isJson, parsePlainJson } from '../../core/plain-json.ts';
import type { Problem } from '../jobs.ts';

/** Input of a transform: JSON texts of the event's description and, in most cases, of its payload. */
export interface EngineInput {
  organization: string;
  code: string;
  event: string;
  payload: string;
  /** The payload is above 1 MiB, and takes more memory and time. */
  isLarge?: boolean;
  /** Called when the output may differ from what was meant. */
  warn?: (warning: string) => void;
}

/** The code of a user is wrong, or did something wrong. */
export class CodeError extends Error {
  readonly line: number | null;
  readonly column: number | null;

  constructor(message: string, { line = null, column = null }: Partial<Pick<Problem, 'line' | 'column'>> = {}) {
    super(message);
    this.line = line;
    this.column = column;
  }
}

export interface TransformEngine {
  /** Throws CodeError for code that does not parse. */
  check(code: string): Promise<void>;
  /** The text of the output; null when there is none. Throws CodeError. */
  run(input: EngineInput): Promise<string | null>;
}

/**
 * The event as the native engines see it: its description with the payload parsed, or as text where it is no JSON. `parse` takes JSON; by default numbers
 * are doubles.
 */
export function eventOf(
  { event, payload }: Pick<EngineInput, 'event' | 'payload'>,
  parse: (json: string) => unknown = parsePlainJson,
): Record<string, unknown> {
  return { ...Object(parse(event)), payload: isJson(payload) ? parse(payload) : payload };
}

/** Line and column, from 1, of a position in a text. */
export function lineAndColumn(text: string, position: number): { line: number; column: number } {
  const before = text.slice(0, position).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}
