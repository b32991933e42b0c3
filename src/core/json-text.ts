import { withoutByteOrderMark } from './payload-text.ts';
import { parseJson } from './read-json.ts';

/** The value of a JSON text, or what is wrong with the text. A byte order mark before it counts for nothing. */
export function parsedJson(text: string): { value: unknown; problem?: undefined } | { value?: undefined; problem: string } {
  try {
    return { value: parseJson(withoutByteOrderMark(text)) };
  } catch (error) {
    return { problem: `not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
