import { dirname, relative } from 'node:path';

const includeLine = /^-- @include /;

/** Returns the text of a Lua file with other include lines: at their position; else of an include at its top, of a script at the end of its header. */
export function withIncludes(text: string, file: URL, includes: readonly URL[]): string {
  const lines = text.split('\n');
  const wanted = includes.map((include) => `-- @include "${relative(dirname(file.pathname), include.pathname)}"`);
  const others = lines.filter((line) => !includeLine.test(line));
  const first = lines.findIndex((line) => includeLine.test(line));
  if (first >= 0) return [...others.slice(0, first), ...wanted, ...others.slice(first)].join('\n');
  if (wanted.length === 0) return text;
  if (file.pathname.includes('/includes/')) return [...wanted, '', ...lines].join('\n');
  const end = lines.findIndex((line) => !/^(--|#!)/.test(line));
  return [...lines.slice(0, end), ...wanted, ...lines.slice(end)].join('\n');
}
