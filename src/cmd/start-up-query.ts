import { withJitter } from '../core/backoff.ts';
import { isPosthornError } from '../core/errors.ts';
import type { RoleContext } from './role-process.ts';

const retryMs = 1000;

/** Runs a start-up query of a role on Redis, repeated until there is a reply. Null: the process is to stop before that. Throws INVALID_CONFIG. */
export async function startUpQuery<T>({ clock, logger, stopping }: RoleContext, what: string, ask: () => Promise<T>): Promise<T | null> {
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
