import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Member {
  table: string;
  name: string;
  place: string;
}

/**
 * Returns a complaint for each member of a table of an include that no file reads. A member is what `function <table>.<name>` declares, or what the table has
 * that a block of the include makes at its end: `<table> = { <name> = …`. The names of files are relative to `root`.
 */
export function unusedMembers(files: readonly URL[], root: URL): string[] {
  const texts = files.map((file) => ({ file, lines: readFileSync(file, 'utf8').split('\n') }));
  const read = new Set(texts.flatMap(({ lines }) => lines.flatMap(membersRead)));
  return texts
    .filter(({ file }) => file.pathname.includes('/includes/'))
    .flatMap(({ file, lines }) => membersOf(lines, relative(fileURLToPath(root), fileURLToPath(file))))
    .filter(({ table, name }) => !read.has(`${table}.${name}`))
    .map(({ table, name, place }) => `${place}: gives ${table} the member ${name}, which nothing uses`);
}

function membersRead(line: string): string[] {
  if (/^\s*--/.test(line)) return [];
  return Array.from(line.replace(/^\s*function [\w.]+/, '').matchAll(/(?<![\w.])([a-z]\w*\.[a-z]\w*)/g), ([, read = '']) => read);
}

function membersOf(lines: readonly string[], file: string): Member[] {
  const tables = new Set(lines.flatMap((line) => /^local (\w+)(?:$| = \{)/.exec(line)?.[1] ?? []));
  const members: Member[] = [];
  let open: string | undefined;
  for (const [at, line] of lines.entries()) {
    const place = `${file}:${at + 1}`;
    const [, functionsTable = '', declared = ''] = /^\s*function (\w+)\.(\w+)\(/.exec(line) ?? [];
    if (tables.has(functionsTable)) members.push({ table: functionsTable, name: declared, place });
    const [, made, inline = ''] = /^ {2}(\w+) = \{(.*)$/.exec(line) ?? [];
    if (made !== undefined && tables.has(made)) open = made;
    if (open === undefined) continue;
    for (const [, name = ''] of (made === undefined ? line : inline).matchAll(/(?:^|[\s,])(\w+) = /g))
      members.push({ table: open, name, place });
    if (line.includes('}')) open = undefined;
  }
  return members;
}
