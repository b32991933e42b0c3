import { type JsonLine, jsonLines, visibleLines } from './json-lines.ts';

/** Null: the text is not JSON. */
function linesOf(text: string): JsonLine[] | null {
  const work = jsonLines(text);
  for (;;) {
    const { done, value } = work.next();
    if (done !== true) continue;
    return value.faultAt === null && value.lines.length > 0 ? value.lines : null;
  }
}

/** The members of a JSON object as they are written, by name. Null: the text is no JSON object. */
export function memberTexts(text: string): Map<string, string> | null {
  const lines = linesOf(text);
  if (lines === null || text[lines[0]?.valueStart ?? 0] !== '{') return null;
  const members = lines.filter(({ depth, keyStart }) => depth === 1 && keyStart >= 0);
  return new Map(
    members.map(({ keyStart, keyEnd, valueStart, valueEnd }) => [
      String(JSON.parse(text.slice(keyStart, keyEnd))),
      text.slice(valueStart, valueEnd),
    ]),
  );
}

/** JSON in lines with an indent of two, its numbers as they are written; the lines of a text that is not JSON. */
export function laidOut(text: string): string[] {
  const lines = linesOf(text);
  if (lines === null) return text.split(/\r\n|\n|\r/);
  return visibleLines(lines, new Set()).flatMap((at) => {
    const line = lines[at];
    if (line === undefined) return [];
    const { kind, depth, keyStart, keyEnd, valueStart, valueEnd, members } = line;
    const key = keyStart < 0 ? '' : `${text.slice(keyStart, keyEnd)}: `;
    const isEmpty = kind === 'open' && members === 0;
    const opening = text[valueStart] ?? '';
    const value = isEmpty ? `${opening}${opening === '{' ? '}' : ']'}` : kind === 'open' ? opening : text.slice(valueStart, valueEnd);
    const { hasComma } = (isEmpty ? lines[line.end] : line) ?? line;
    return [`${'  '.repeat(depth)}${key}${value}${hasComma ? ',' : ''}`];
  });
}
