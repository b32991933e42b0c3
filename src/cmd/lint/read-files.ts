import { isUtf8 } from 'node:buffer';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { PosthornError } from '../../core/errors.ts';
import { posthornKinds } from '../../resources/kinds.ts';
import { manifestBytes, type ReadObject, readDocuments } from '../../runtime/manifests/parse.ts';
import type { Place } from '../../runtime/manifests/places.ts';
import { manifestPaths } from '../../runtime/manifests/read-directory.ts';
import { fileFindings } from './file-findings.ts';
import type { LintFinding } from './finding.ts';

/** An object and its file. */
export interface FoundObject extends ReadObject {
  file: string;
}

export interface FoundManifests {
  /** In the order in which they are read. */
  files: string[];
  objects: FoundObject[];
  /** Findings about files and documents apart from their objects. */
  findings: LintFinding[];
}

/**
 * The objects of Posthorn's kinds, Namespaces and Secrets in the files, and in all files below the directories; `-` is the standard input. Objects of
 * other API groups are left out. `namespace`: of objects that name none. Throws INVALID_CONFIG for a path that cannot be read.
 */
export async function readFiles(paths: readonly string[], namespace: string): Promise<FoundManifests> {
  const found: FoundManifests = { files: [], objects: [], findings: [] };
  for (const path of paths) {
    for (const file of await filesAt(path)) {
      found.files.push(file);
      const bytes = await bytesOf(file);
      if (!isUtf8(bytes)) {
        const message = 'the file is not UTF-8 from here on: it may be damaged or cut off';
        found.findings.push({ severity: 'error', file, ...firstForeignByte(bytes), reason: 'Unreadable', message });
        continue;
      }
      const text = bytes.toString();
      const read = readDocuments(text, { kinds: posthornKinds, namespace, skipsForeign: true });
      found.objects.push(...read.documents.flatMap(({ objects }) => objects.map((each) => ({ ...each, file }))));
      found.findings.push(...fileFindings(text, read).map(({ severity, ...finding }) => ({ severity, file, ...finding })));
    }
  }
  return found;
}

async function filesAt(path: string): Promise<string[]> {
  if (path === '-') return [path];
  const isDirectory = await orUnreadable(path, async () => (await stat(path)).isDirectory());
  return isDirectory ? (await orUnreadable(path, () => manifestPaths(path))).map((below) => join(path, below)) : [path];
}

async function bytesOf(file: string): Promise<Buffer> {
  return manifestBytes(file === '-' ? await buffer(process.stdin) : await orUnreadable(file, () => readFile(file)));
}

async function orUnreadable<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw new PosthornError('INVALID_CONFIG', `${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Where bytes first differ from the UTF-8 of the text that they are read as. */
function firstForeignByte(bytes: Buffer): Place {
  const read = Buffer.from(bytes.toString());
  const at = bytes.findIndex((byte, index) => read[index] !== byte);
  const lines = bytes.subarray(0, at).toString().split('\n');
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 };
}
