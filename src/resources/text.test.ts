import { expect, test } from '@jest/globals';
import { withinProcessorTime } from '../../test/support/short-work.ts';
import { filledLine, line, paragraph } from './text.ts';

/** A pattern that backtracks takes minutes for such texts. */
const long = 1_000_000;

test.each([
  ['a name', filledLine(100), 'a'.repeat(long)],
  ['a line', line(0, 100), 'a'.repeat(long)],
  ['a paragraph', paragraph(0, 100), 'a'.repeat(long)],
])('%s of a million characters with a control character at its end is refused for its length at once', (_what, schema, text) => {
  const { error } = withinProcessorTime(() => schema.safeParse(`${text}\u0001`));
  expect(error?.issues.map(({ message }) => message)).toEqual(['must be at most 100 characters long']);
});
