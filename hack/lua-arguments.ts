import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const decoded = /^local (\w+) = decoded\(ARGV\[1\]\)$/m;

/** Returns a complaint for each value that a script takes by name (`namedArgument`) and that its header does not name. The names of files are relative to `root`. */
export function undocumentedNames(scripts: readonly URL[], root: URL): string[] {
  return scripts.flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    const [, argument] = decoded.exec(text) ?? [];
    const name = relative(fileURLToPath(root), fileURLToPath(file));
    if (argument === undefined) {
      const at = text.split('\n').findIndex((line) => line.includes('decoded(ARGV[1])'));
      return at < 0 ? [] : [`${name}:${at + 1}: takes values by name other than with local <name> = decoded(ARGV[1])`];
    }
    const lines = text.split('\n');
    const end = lines.findIndex((line) => !/^(--|#!)/.test(line));
    const documented = new Set(lines.slice(0, end).join('\n').match(/\w+/g));
    const used = new RegExp(`(?<![\\w.])${argument}\\.(\\w+)`, 'g');
    return lines.flatMap((line, at) =>
      Array.from(/^\s*--/.test(line) ? [] : line.matchAll(used), ([, taken = '']) => taken)
        .filter((taken) => !documented.has(taken))
        .map((taken) => `${name}:${at + 1}: takes ${taken}, which the header does not name`),
    );
  });
}
