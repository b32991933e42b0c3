import type { z } from 'zod';

/** Errors of a value, in one line. */
export function issuesText({ issues }: z.ZodError): string {
  return issues.map(({ message }) => message).join(', ');
}
