import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { filesBelow, filesDigest } from '../../hack/files-digest.ts';

const seeds = new URL('../../.cache/control-plane/', import.meta.url).pathname;
/** Another run may still use one that is younger. */
const unusedMs = 24 * 3_600_000;

/** What a seed depends on. */
export interface SeedOf {
  /** Programs; a change shows by the size and the time. */
  programs: readonly string[];
  /** Files whose content counts. */
  files: readonly string[];
}

/**
 * The data of etcd as a first start of the API server leaves it, kept for all suites: a control plane that begins with a copy takes half the processor time.
 * `make` starts and ends such servers, and returns the directory of the data; it is copied.
 */
export async function keptSeed({ programs, files }: SeedOf, make: () => Promise<string>): Promise<string> {
  const digest = createHash('sha256').update(filesDigest('/', files));
  for (const program of programs) digest.update(`${program} ${statSync(program).size} ${statSync(program).mtimeMs}\n`);
  const seed = join(seeds, digest.digest('hex'));
  if (!existsSync(seed)) {
    mkdirSync(seeds, { recursive: true });
    removeUnused();
    const own = mkdtempSync(`${seed}.new-`);
    const made = join(own, 'data');
    await copyData(await make(), made);
    for (const file of filesBelow(made)) endInHole(file);
    try {
      renameSync(made, seed);
    } catch (error) {
      // Another process may have been first.
      if (!existsSync(seed)) throw error;
    } finally {
      rmSync(own, { recursive: true, force: true });
    }
  }
  const now = new Date();
  utimesSync(seed, now, now);
  return seed;
}

function removeUnused(): void {
  for (const former of readdirSync(seeds).map((name) => join(seeds, name)))
    if (Date.now() - (statSync(former, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > unusedMs)
      rmSync(former, { recursive: true, force: true });
}

/** Most of its log is zeros that etcd has reserved. As a hole they take no room, and are not copied. */
function endInHole(file: string): void {
  const content = readFileSync(file);
  let end = content.length;
  while (content[end - 1] === 0) end--;
  truncateSync(file, end);
  truncateSync(file, content.length);
}

/** `cp` leaves holes as they are; Node would write their zeros. */
export async function copyData(from: string, to: string): Promise<void> {
  mkdirSync(dirname(to), { recursive: true });
  await promisify(execFile)('cp', ['-R', from, to]);
}
