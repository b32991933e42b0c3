import { PosthornError } from '../../core/errors.ts';

/** Turns what the connection throws into UNAVAILABLE. What a write then did is unknown. */
export async function reachable<T>(attempt: Promise<T>): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    if (error instanceof PosthornError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new PosthornError('UNAVAILABLE', `the resource store in Redis does not answer: ${reason}`, { cause: error });
  }
}
