import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { PosthornError } from '../../core/errors.ts';
import { posthornKinds } from '../../resources/kinds.ts';
import { parseManifests } from '../../runtime/manifests/parse.ts';
import { manifestPaths } from '../../runtime/manifests/read-directory.ts';
import type { ApplyObject } from '../../store/store.ts';

/** An object and the file that it stands in. */
export interface FoundObject {
  file: string;
  object: ApplyObject;
}

export interface FoundManifests {
  objects: FoundObject[];
  errors: { file: string; message: string }[];
}

/**
 * The objects of Posthorn's kinds, Namespaces and Secrets in the files, and in all files below the directories; `-` is the standard input. Objects of
 * other API groups are left out. `namespace`: of objects that name none. Throws INVALID_CONFIG for a path that cannot be read.
 */
export async function readFiles(paths: readonly string[], namespace: string): Promise<FoundManifests> {
  const found: FoundManifests = { objects: [], errors: [] };
  for (const path of paths) {
    for (const file of await filesAt(path)) {
      const { objects, errors } = parseManifests(file, await contentOf(file), { kinds: posthornKinds, namespace, skipsForeign: true });
      found.objects.push(...objects.map((object) => ({ file, object })));
      found.errors.push(...errors);
    }
  }
  return found;
}

async function filesAt(path: string): Promise<string[]> {
  if (path === '-') return [path];
  const isDirectory = await orUnreadable(path, async () => (await stat(path)).isDirectory());
  return isDirectory ? (await orUnreadable(path, () => manifestPaths(path))).map((below) => join(path, below)) : [path];
}

async function contentOf(file: string): Promise<string> {
  return file === '-' ? await text(process.stdin) : await orUnreadable(file, () => readFile(file, 'utf8'));
}

async function orUnreadable<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw new PosthornError('INVALID_CONFIG', `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
