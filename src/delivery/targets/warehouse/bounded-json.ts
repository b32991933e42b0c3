/**
 * The JSON object of these columns, in their order; null when it would be longer than so many characters. Columns are made into text
 * one after another, and what a column has many of one by one: a path that finds nested values finds the inner ones again and again.
 * Yields after each column.
 */
export function* boundedJson(
  columns: Iterable<[column: string, value: unknown]>,
  maxCharacters: number,
): Generator<undefined, string | null> {
  const parts: string[] = [];
  let length = 2;
  const add = (text: string): boolean => {
    length += text.length;
    if (length <= maxCharacters) parts.push(text);
    return length <= maxCharacters;
  };
  for (const [column, value] of columns) {
    if (!add(`${parts.length === 0 ? '{' : ','}${JSON.stringify(column)}:`)) return null;
    if (!Array.isArray(value)) {
      if (!add(JSON.stringify(value))) return null;
      yield;
      continue;
    }
    for (const [i, each] of value.entries()) if (!add(`${i === 0 ? '[' : ','}${JSON.stringify(each)}`)) return null;
    if (!add(value.length === 0 ? '[]' : ']')) return null;
    yield;
  }
  return `${parts.length === 0 ? '{' : ''}${parts.join('')}}`;
}
