import type { z } from 'zod';

/** What is wrong with a value, in one line. */
export function issuesText({ issues }: z.ZodError): string {
  return issues.map(({ message }) => message).join(', ');
}
