import type { Finding } from './conditions.ts';

/** Condition Programmed of an object whose present generation is not published. */
export function notProgrammed(published: { generation: number } | null): Finding {
  return published === null
    ? { status: 'False', reason: 'NothingInForce', message: 'nothing is in force' }
    : { status: 'False', reason: 'EarlierInForce', message: `what was published for generation ${published.generation} stays in force` };
}
