import { jsonMember } from '../../core/json-member.ts';
import type { Call } from './operation.ts';

/** Returns the bytes of a member of the body as they were sent; null: there is none. */
export async function bodyMember(
  { bodyBytes, turn, signal }: Pick<Call, 'bodyBytes' | 'turn' | 'signal'>,
  name: string,
): Promise<Buffer | null> {
  return await turn.runShort(jsonMember(bodyBytes, name), signal);
}
