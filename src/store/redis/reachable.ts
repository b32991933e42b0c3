import { PosthornError } from '../../core/errors.ts';

/** Turns errors of the connection into UNAVAILABLE. The effect of a write is then unknown. */
export async function reachable<T>(attempt: Promise<T>): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    if (error instanceof PosthornError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new PosthornError('UNAVAILABLE', `the resource store in Redis does not answer: ${reason}`, { cause: error });
  }
}
