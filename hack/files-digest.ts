import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** SHA-256 of the paths, relative to the directory, and the contents of the files, in this order. */
export function filesDigest(directory: string, files: readonly string[]): string {
  const digest = createHash('sha256');
  for (const file of files) digest.update(relative(directory, file)).update('\0').update(readFileSync(file));
  return digest.digest('hex');
}

/** The files in the directory and in all directories below it, sorted by path. */
export function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
