const token = /<!--[\s\S]*?-->|<!\[CDATA\[[\s\S]*?\]\]>|<\?[\s\S]*?\?>|<[^>]*>|[^<]+/g;
const tokensPerTurn = 512;

/** XML with one element a line, indented; an element that has text alone stays in one line. Yields the offset it has come to. */
export function* indentedXml(text: string): Generator<number, string> {
  const lines: string[] = [];
  let depth = 0;
  let tokens = 0;
  let isAfterOpening = false;
  for (const { 0: part, index } of text.matchAll(token)) {
    tokens += 1;
    if (tokens % tokensPerTurn === 0) yield index;
    const trimmed = part.trim();
    if (trimmed === '') continue;
    const isClosing = part.startsWith('</');
    const isText = !part.startsWith('<') || part.startsWith('<![CDATA[');
    if (isClosing) depth = Math.max(0, depth - 1);
    const isInLine: boolean = isAfterOpening && (isClosing || isText);
    if (isInLine) lines.push(`${lines.pop() ?? ''}${isText ? part.trim() : part}`);
    else lines.push(`${'  '.repeat(depth)}${trimmed}`);
    const isOpening = /^<[^/!?]/.test(part) && !part.endsWith('/>');
    if (isOpening) depth += 1;
    // The closing of an element whose text is in its line is there, too.
    isAfterOpening = isOpening || (isInLine && isText);
  }
  return lines.join('\n');
}
