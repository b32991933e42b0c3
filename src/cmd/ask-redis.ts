import { withJitter } from '../core/backoff.ts';
import { isPosthornError } from '../core/errors.ts';
import type { RoleContext } from './role-process.ts';

const retryMs = 1000;

/** What a role asks of Redis at its start: again and again until there is an answer. Null: the process is to stop before that. Throws INVALID_CONFIG. */
export async function askRedis<T>({ clock, logger, stopping }: RoleContext, what: string, ask: () => Promise<T>): Promise<T | null> {
  while (!stopping.aborted) {
    try {
      return await ask();
    } catch (error) {
      if (isPosthornError(error, 'INVALID_CONFIG')) throw error;
      logger.debug({ err: error }, `reading ${what} failed; retrying`);
      await clock.sleep(withJitter(retryMs), stopping);
    }
  }
  return null;
}
