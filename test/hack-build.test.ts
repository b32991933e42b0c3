import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

const root = new URL('../', import.meta.url).pathname;
let directory: string;
const pathOf = (name: string): string => join(directory, name);

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-build-'));
  mkdirSync(pathOf('src/web'), { recursive: true });
  const copied = [...readFileSync(join(root, 'Dockerfile'), 'utf8').matchAll(/^COPY ((?:hack\/|tsconfig|package)\S.*) \S+$/gm)];
  for (const name of copied.flatMap(([, names = '']) => names.split(' '))) cpSync(join(root, name), pathOf(name));
  symlinkSync(join(root, 'node_modules'), pathOf('node_modules'));
  writeFileSync(pathOf('src/web/index.html'), '<!doctype html><title>Console</title>');
  writeFileSync(pathOf('src/program.ts'), 'export const answer: number = 1;');
  writeFileSync(pathOf('src/take.lua'), 'return 1');
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Runs hack/build.ts. Returns whether it made a new `dist/`. */
function builds(args: readonly string[], environment: NodeJS.ProcessEnv = {}): boolean {
  const mark = pathOf('dist/mark');
  if (existsSync(pathOf('dist'))) writeFileSync(mark, '');
  execFileSync(process.execPath, ['hack/build.ts', ...args], { cwd: directory, env: { ...process.env, ...environment } });
  return !existsSync(mark);
}

test('the files that the Dockerfile copies build the program, its scripts, the console and the software bill of materials', () => {
  expect(builds([])).toBe(true);
  for (const name of ['program.js', 'take.lua', 'web/index.html', 'sbom.cdx.json'])
    expect([name, existsSync(pathOf(`dist/${name}`))]).toEqual([name, true]);
}, 180_000);

test('--if-changed builds when a source, what builds or the base image has changed, or a build was interrupted, and not otherwise', () => {
  builds(['--if-changed']);
  expect(builds(['--if-changed'])).toBe(false);
  expect(builds([])).toBe(true);
  writeFileSync(pathOf('src/program.ts'), 'export const answer: number = 2;');
  expect(builds(['--if-changed'])).toBe(true);
  expect(readFileSync(pathOf('dist/program.js'), 'utf8')).toContain('answer = 2');
  writeFileSync(pathOf('hack/sbom.ts'), `${readFileSync(pathOf('hack/sbom.ts'), 'utf8')}\n// Changed.\n`);
  expect(builds(['--if-changed'])).toBe(true);
  expect(builds(['--if-changed'], { BASE_IMAGE: 'node@sha256:0' })).toBe(true);
  writeFileSync(pathOf('src/program.ts'), 'export const answer: number = "none";');
  expect(() => builds(['--if-changed'])).toThrow();
  expect(() => builds(['--if-changed'])).toThrow();
}, 180_000);
