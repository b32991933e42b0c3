import { inOnePiece } from './in-one-piece.ts';
import { withoutByteOrderMark } from './payload-text.ts';
import { parseJson } from './read-json.ts';
import { repeatedMember } from './repeated-members.ts';

type ParsedJson = { value: unknown; problem?: undefined } | { value?: undefined; problem: string };

/** The value of a JSON text, or its error. A byte order mark before it is skipped. */
export function parsedJson(text: string): ParsedJson {
  try {
    return { value: parseJson(withoutByteOrderMark(text)) };
  } catch (error) {
    return { problem: `not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** The same of a text that people write: two members of one name in an object are a problem, too. */
export function parsedStrictJson(text: string): ParsedJson {
  const parsed = parsedJson(text);
  const path = parsed.problem === undefined ? inOnePiece(repeatedMember(Buffer.from(text))) : null;
  return path === null ? parsed : { problem: `JSON that has ${path.join('.').slice(0, maxShownPath)} twice` };
}

const maxShownPath = 100;
