import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PosthornError } from '../../core/errors.ts';

/** A little less than what a socket address holds. */
const maxSocketPathBytes = 100;

/** A unix socket in this directory, or in one of the system's when its path would be too long. Nobody else may enter either. */
export function socketPath(directory: string, name: string): string {
  const isShort = Buffer.byteLength(join(directory, name)) <= maxSocketPathBytes;
  const used = isShort ? directory : join(tmpdir(), `posthorn-${createHash('sha256').update(directory).digest('hex').slice(0, 16)}`);
  mkdirSync(used, { recursive: true, mode: 0o700 });
  requireOwn(used, !isShort);
  chmodSync(used, 0o700);
  return join(used, name);
}

/** Throws UNAVAILABLE when another user owns the directory. `isShared`: what contains it is writable by all, so any user may have made it, or filled it. */
function requireOwn(directory: string, isShared: boolean): void {
  const found = isShared ? lstatSync(directory) : statSync(directory);
  const isOwn = found.isDirectory() && found.uid === process.getuid?.();
  if (isOwn && !(isShared && (found.mode & 0o077) !== 0)) return;
  throw new PosthornError(
    'UNAVAILABLE',
    `${directory} must be a directory of this user that nobody else may enter: remove it, or choose another data directory`,
  );
}
