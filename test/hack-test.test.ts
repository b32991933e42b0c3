import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventually } from './support/eventually.ts';

/** Writes its number and that of a command that it waits for. */
const goesOn = 'sleep 600 & echo "$$ $!" >"$NUMBERS" && wait';
const cluster = `#!/bin/bash
echo "$1" >>"$CALLS"
case $1 in
  assets) echo /nowhere ;;
  status) exit 1 ;;
  up) ${goesOn} ;;
esac
`;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'posthorn-hack-test-'));
  for (const path of ['hack/test', 'hack/lib']) cpSync(new URL(`../${path}`, import.meta.url), join(root, path), { recursive: true });
  writeFileSync(join(root, 'hack/test-program.ts'), '');
  mkdirSync(join(root, 'node_modules'));
  writeFileSync(join(root, 'node_modules/.package-lock.json'), '{}');
  // npm hands the patterns on as further words.
  writeFileSync(join(root, 'package.json'), JSON.stringify({ scripts: { test: `sh -c '${goesOn}' sh` } }));
  writeFileSync(join(root, 'hack/cluster'), cluster, { mode: 0o755 });
});
afterEach(() => rmSync(root, { recursive: true }));

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test.each([
  ['SIGINT', 130, 'while the cluster starts', 'test/e2e/any', ['assets', 'status', 'up', 'down']],
  ['SIGTERM', 143, 'while the cluster starts', 'test/e2e/any', ['assets', 'status', 'up', 'down']],
  ['SIGTERM', 143, 'while suites run', 'src/any', ['assets']],
] as const)('after a %s hack/test ends with %i, and nothing that it has started is left: %s', async (signal, code, _, suites, called) => {
  const [calls, numbers] = [join(root, 'calls'), join(root, 'numbers')];
  const child = spawn(join(root, 'hack/test'), [suites], {
    env: { ...process.env, CALLS: calls, NUMBERS: numbers },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  const read = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '');
  const started = await eventually('what it starts', 30_000, () => /^(\d+) (\d+)\n$/.exec(read(numbers)) ?? undefined);
  child.kill(signal);
  expect(await ended).toEqual([code, null]);
  // The process that adopts the killed ones reaps them a moment later.
  await eventually(() => expect(started.slice(1).map(Number).filter(isAlive)).toEqual([]));
  expect(read(calls).trim().split('\n')).toEqual(called);
});

test.each([
  ['that succeed', 0, '3 passed, 0 failed'],
  ['of which some end without a count', 1, '3 passed, 1 failed'],
] as const)('the last line of hack/test counts suites %s', async (_, code, line) => {
  const counts = `echo 3 0 0 >>"$POSTHORN_TEST_COUNTS" && exit ${code}`;
  writeFileSync(join(root, 'package.json'), JSON.stringify({ scripts: { test: `sh -c '${counts}' sh` } }));
  const child = spawn(join(root, 'hack/test'), ['src/any'], {
    env: { ...process.env, CALLS: join(root, 'calls') },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [output, ended] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  expect(output.trim().split('\n').at(-1)).toBe(line);
  expect(ended).toEqual([code, null]);
});
