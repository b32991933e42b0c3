import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { manifestText, type ParsedManifests, parseManifests, type Reading } from './parse.ts';

const extensions = ['.yaml', '.yml', '.json'];

/**
 * The objects of all manifest files below a directory, in the order of their paths; hidden files and directories are
 * left out. Rejects when the directory cannot be read; a file that cannot is an error in the result.
 */
export async function readManifests(directory: string, reading: Reading = {}): Promise<ParsedManifests & { files: number }> {
  const paths = await manifestPaths(directory);
  const result: ParsedManifests = { objects: [], errors: [] };
  const seen = new Map<string, string>();
  for (const path of paths) {
    let text: string;
    try {
      text = manifestText(await readFile(join(directory, path)));
    } catch (error) {
      result.errors.push({ file: path, message: `cannot be read: ${error instanceof Error ? error.message : error}` });
      continue;
    }
    const { objects, errors } = parseManifests(path, text, reading);
    result.errors.push(...errors);
    for (const object of objects) {
      const id = `${object.kind} ${object.metadata.namespace ?? ''}/${object.metadata.name}`;
      const other = seen.get(id);
      if (other === undefined) result.objects.push(object);
      else result.errors.push({ file: path, message: `${id} is in ${other} already` });
      seen.set(id, other ?? path);
    }
  }
  return { ...result, files: paths.length };
}

/** Paths of the manifest files below `root`, in their order; hidden files and directories are left out. Rejects when a directory cannot be read. */
export async function manifestPaths(root: string, below = ''): Promise<string[]> {
  const entries = await readdir(join(root, below), { withFileTypes: true });
  const paths: string[] = [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith('.')) continue;
    const path = join(below, entry.name);
    if (entry.isDirectory()) paths.push(...(await manifestPaths(root, path)));
    else if (extensions.some((extension) => entry.name.endsWith(extension))) paths.push(path);
  }
  return paths;
}
