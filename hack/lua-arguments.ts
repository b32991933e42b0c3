import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const decoded = /^local (\w+) = decoded\(ARGV\[1\]\)$/m;

/** Returns a complaint for each value that a script takes by name (`namedArgument`) and that its header does not name. The names of files are relative to `root`. */
export function undocumentedNames(scripts: readonly URL[], root: URL): string[] {
  return scripts.flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    const [, argument] = decoded.exec(text) ?? [];
    if (argument === undefined) return [];
    const lines = text.split('\n');
    const end = lines.findIndex((line) => !/^(--|#!)/.test(line));
    const documented = new Set(lines.slice(0, end).join('\n').match(/\w+/g));
    const used = new RegExp(`(?<![\\w.])${argument}\\.(\\w+)`, 'g');
    return lines.flatMap((line, at) =>
      Array.from(/^\s*--/.test(line) ? [] : line.matchAll(used), ([, name = '']) => name)
        .filter((name) => !documented.has(name))
        .map((name) => `${relative(fileURLToPath(root), fileURLToPath(file))}:${at + 1}: takes ${name}, which the header does not name`),
    );
  });
}
