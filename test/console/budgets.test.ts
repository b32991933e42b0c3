import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, expect, test } from '@jest/globals';
import { webPackages } from '../../hack/web-packages.ts';
import { buildConsole, consoleDirectory } from './built-console.ts';

let page: string;
beforeAll(async () => {
  await buildConsole();
  page = readFileSync(join(consoleDirectory, 'index.html'), 'utf8');
});

const kib = (bytes: number): number => Math.round((bytes / 1024) * 10) / 10;
/** Size of the files that the page names, compressed with gzip as the build does it. */
const kibOfFirstLoad = (extension: string): number => {
  const names = [...page.matchAll(/"\.\/(assets\/[^"]+)"/g)].map(([, name = '']) => name).filter((name) => name.endsWith(extension));
  expect(names.length).toBeGreaterThan(0);
  return kib(names.reduce((bytes, name) => bytes + gzipSync(readFileSync(join(consoleDirectory, name)), { level: 9 }).length, 0));
};

test('the first load has at most 215 KiB of scripts, and 16 KiB of styles', () => {
  expect(kibOfFirstLoad('.js')).toBeLessThanOrEqual(215);
  expect(kibOfFirstLoad('.css')).toBeLessThanOrEqual(16);
});

test('the build is that of production, whatever NODE_ENV says', () => {
  const assets = readdirSync(join(consoleDirectory, 'assets')).filter((name) => name.endsWith('.js'));
  expect(assets.filter((name) => readFileSync(join(consoleDirectory, 'assets', name), 'utf8').includes('jsxDEV'))).toEqual([]);
});

test('the console with its compressed forms takes at most 2 MiB of the image, and has no source map', () => {
  const files = readdirSync(consoleDirectory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const bytes = files.reduce((sum, { parentPath, name }) => sum + readFileSync(join(parentPath, name)).length, 0);
  expect(kib(bytes)).toBeLessThanOrEqual(2048);
  expect(files.filter(({ name }) => name.endsWith('.map'))).toEqual([]);
});

test('nothing comes from elsewhere, and no font at all', () => {
  const named = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address).filter((each) => !each.startsWith('#'));
  expect(named.filter((address) => !address.startsWith('./assets/'))).toEqual([]);
  expect(page).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/);
  const assets = readdirSync(join(consoleDirectory, 'assets'));
  expect(assets.filter((name) => /\.(?:woff2?|ttf|otf|eot)(?:\.|$)/.test(name))).toEqual([]);
  for (const name of assets.filter((each) => each.endsWith('.css'))) {
    expect(readFileSync(join(consoleDirectory, 'assets', name), 'utf8')).not.toMatch(/@font-face|@import|url\(\s*["']?(?:https?:)?\/\//);
  }
});

test('the licences of the packages in the console are beside it, and its packages in the bill of materials', () => {
  const licences = readFileSync(join(consoleDirectory, 'licences.txt'), 'utf8');
  const packages = [...licences.matchAll(/^(\S+) (\d+\.\d+\.\d+\S*) \([^)]+\)$/gm)].map(([, name = '', version = '']) => ({
    name,
    version,
  }));
  expect(packages.map(({ name }) => name)).toEqual(expect.arrayContaining(['react', 'react-dom', 'scheduler']));
  expect(licences).toContain('Copyright (c) Meta Platforms');
  expect(licences).not.toContain('has no text of its licence');
  const { components } = JSON.parse(readFileSync(new URL('../../docs/sbom.cdx.json', import.meta.url), 'utf8'));
  for (const each of packages) expect(components).toContainEqual(expect.objectContaining(each));
  for (const name of webPackages()) expect(components).toContainEqual(expect.objectContaining({ name }));
});
