import type { Finding } from './conditions.ts';

/** Reason of Programmed: the plan lacks what the object needs. */
export const suspended = 'Suspended';

/** Reason of Programmed: the present generation is not published, an earlier one is. */
export const earlierInForce = 'EarlierInForce';

/** Condition Programmed of an object whose present generation is published. */
export function programmed(isSuspended: boolean): Finding {
  if (!isSuspended) return { status: 'True', reason: 'Programmed', message: '' };
  return { status: 'False', reason: suspended, message: 'deliveries are suspended; messages stay queued' };
}

/** Condition Programmed of an object whose present generation is not published. */
export function notProgrammed(published: { generation: number | null } | null, isDisabled = false): Finding {
  if (published === null) return { status: 'False', reason: 'NothingInForce', message: 'no generation is programmed' };
  const what = published.generation === null ? 'an earlier generation' : `generation ${published.generation}`;
  return {
    status: 'False',
    reason: earlierInForce,
    message: `${what} remains programmed${isDisabled ? ', disabled' : ''}`,
  };
}
