import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { socketPath } from './socket-path.ts';

let root: string;
let long: string;
/** Where the socket of `long` is: beside directories of others. */
let shared: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'posthorn-socket-'));
  long = join(root, 'x'.repeat(100));
  shared = dirname(socketPath(long, 'api.sock'));
  rmSync(shared, { recursive: true });
});
afterEach(() => {
  for (const each of [root, shared]) rmSync(each, { recursive: true, force: true });
});

test('the directory of a socket is made for this user alone, and used again', () => {
  for (const path of [socketPath(root, 'a.sock'), socketPath(long, 'a.sock'), socketPath(long, 'a.sock')])
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
});

test('a directory among those of others that others may enter, or a link to one, is refused', () => {
  mkdirSync(shared);
  chmodSync(shared, 0o777);
  expect(() => socketPath(long, 'a.sock')).toThrow(/must be a directory of this user/);
  rmSync(shared, { recursive: true });
  mkdirSync(join(root, 'elsewhere'), { mode: 0o700 });
  symlinkSync(join(root, 'elsewhere'), shared);
  expect(() => socketPath(long, 'a.sock')).toThrow(/must be a directory of this user/);
});
