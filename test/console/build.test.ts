import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

let parent: string;
let directory: string;
beforeAll(() => {
  parent = mkdtempSync(join(tmpdir(), 'posthorn-web-'));
  directory = join(parent, 'web');
});
afterAll(() => rmSync(parent, { recursive: true }));

const build = async (...args: string[]): Promise<string> =>
  (await promisify(execFile)(process.execPath, [new URL('../../hack/web.ts', import.meta.url).pathname, ...args, directory])).stderr;

test('the console is built where it is missing or made of other sources, and not otherwise', async () => {
  mkdirSync(directory);
  writeFileSync(join(directory, 'left-over.js'), '');
  expect(await build('--if-changed')).toContain('building the console');
  expect(readdirSync(directory).sort()).toEqual(['assets', 'index.html', 'licences.txt', 'sources.sha256']);
  expect(readdirSync(parent)).toEqual(['web']);
  expect(await build('--if-changed')).toBe('');
  writeFileSync(join(directory, 'sources.sha256'), 'of other sources');
  expect((await Promise.all([build('--if-changed'), build('--if-changed')])).join()).toContain('building the console');
  expect(readdirSync(parent)).toEqual(['web']);
  expect(await build('--if-changed')).toBe('');
});

test('scripts and styles are there as they are, and compressed with brotli and gzip', async () => {
  await build('--if-changed');
  const assets = join(directory, 'assets');
  const plain = readdirSync(assets).filter((name) => /\.(?:js|css|svg)$/.test(name));
  expect(plain.length).toBeGreaterThan(2);
  for (const name of plain) {
    expect([name, gunzipSync(readFileSync(join(assets, `${name}.gz`))).equals(readFileSync(join(assets, name)))]).toEqual([name, true]);
    expect([name, existsSync(join(assets, `${name}.br`))]).toEqual([name, true]);
  }
});
