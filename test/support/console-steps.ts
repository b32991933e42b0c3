import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = new URL('../../', import.meta.url).pathname;

/** Returns the commands of the first console block below a heading of a page, each with its continuation lines. */
export function consoleSteps(page: string, heading: string): string[] {
  const [, section] = readFileSync(join(root, page), 'utf8').split(`\n## ${heading}\n`);
  const [, block] = /^```console\n([\s\S]*?)^```$/m.exec(section ?? '') ?? [];
  if (block === undefined) throw new Error(`${page} has no console block below the heading ${heading}`);
  return block.split(/^\$ /m).flatMap((step) => /^(?:.*\\\n)*.*/.exec(step)?.[0] || []);
}
