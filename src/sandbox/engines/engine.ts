import { readJson } from '../../core/read-json.ts';
import type { Problem } from '../jobs.ts';

/** What a transform sees: JSON texts of the event's description and, in most cases, of its payload. */
export interface EngineInput {
  organization: string;
  code: string;
  event: string;
  payload: string;
  /** The payload is above 1 MiB, and takes more memory and time. */
  isLarge?: boolean;
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

/** The event as the native engines see it: its description with the payload parsed, or as text where it is no JSON. */
export function eventOf({ event, payload }: Pick<EngineInput, 'event' | 'payload'>): Record<string, unknown> {
  const description: Record<string, unknown> = JSON.parse(event);
  const parsed = readJson(payload);
  return { ...description, payload: parsed === undefined ? payload : parsed };
}

/** Line and column, from 1, of a position in a text. */
export function placeAt(text: string, position: number): { line: number; column: number } {
  const before = text.slice(0, position).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}
