import { PosthornError } from '../../../core/errors.ts';
import type { Problem } from '../../../sandbox/jobs.ts';

/** VALIDATION_FAILED with what is wrong in a field that holds code, and where. */
export function refuseProblem(field: string, problem: Problem | null): void {
  if (problem === null) return;
  const complaint = problemText(problem).replace(/^the code /, '');
  throw new PosthornError('VALIDATION_FAILED', `${field} ${complaint}.`, { details: { [field]: [complaint] } });
}

export function problemText({ message, line, column }: Problem): string {
  if (line === null) return message;
  return `line ${line}${column === null ? '' : `, column ${column}`}: ${message}`;
}
