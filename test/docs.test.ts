import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from '@jest/globals';

const root = new URL('../', import.meta.url).pathname;
const pages = globSync(['*.md', 'docs/**/*.md'], { cwd: root }).sort();

const textOf = (page: string): string => readFileSync(join(root, page), 'utf8');

/** Returns the lines of a page that are not within a fenced block. */
function proseOf(page: string): string[] {
  let isFenced = false;
  return textOf(page)
    .split('\n')
    .filter((line) => {
      const isFence = /^\s*```/.test(line);
      if (isFence) isFenced = !isFenced;
      return !isFence && !isFenced;
    });
}

/** Returns the anchors that a renderer of GitHub's Markdown gives the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const line of proseOf(page)) {
    const [, heading] = /^#{1,6} (.+)$/.exec(line) ?? [];
    if (heading === undefined) continue;
    const anchor = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    let unique = anchor;
    for (let n = 1; anchors.has(unique); n++) unique = `${anchor}-${n}`;
    anchors.add(unique);
  }
  return anchors;
}

test('comments and messages name only pages that exist', () => {
  const files = globSync(['{src,test,hack}/**/*.{ts,lua,cjs,sh}', 'config/**/*.yaml', 'charts/posthorn/{values*,templates/*.*}'], {
    cwd: root,
  });
  const missing = files.flatMap((file) => {
    const named = readFileSync(join(root, file), 'utf8').match(/\bdocs\/[\w/-]+\.md\b/g) ?? [];
    return named.filter((page) => !existsSync(join(root, page))).map((page) => `${file}: ${page}`);
  });
  expect(missing).toEqual([]);
});

test('the page of supported versions names those that the tests use', () => {
  const page = textOf('docs/support.md');
  const toolchain = ['chart-tools', 'kubernetes-binaries'].map((name) => textOf(`hack/lib/${name}.sh`)).join('\n');
  const used = (name: string): string => new RegExp(`^${name}=\\(?v?([\\d.]+)`, 'm').exec(toolchain)?.[1] ?? `no ${name}`;
  const oldest = /kubeVersion: ">=(\d+\.\d+)/.exec(textOf('charts/posthorn/Chart.yaml'))?.[1];
  const [, newest] = /^kubernetes_schema_versions=.* v(\d+\.\d+)\.\d+\)$/m.exec(toolchain) ?? [];
  expect(used('kubernetes_schema_versions')).toMatch(new RegExp(`^${oldest}\\.`));
  const oldestRedis = /oldestMajorVersion = (\d+)/.exec(textOf('src/cmd/redis-settings.ts'))?.[1];
  const oldestNode = /"node": ">=(\d+)"/.exec(textOf('package.json'))?.[1];
  for (const named of [
    `| Kubernetes | ${oldest} or newer`,
    `kube-proxy ${used('kubernetes_version')}:`,
    `schemas of ${oldest} to ${newest}`,
    `| ${used('helm_version')} |`,
    `| Redis | ${oldestRedis} or newer`,
    `| Node.js | ${oldestNode} or newer`,
    `schemas of ${used('gateway_api_version')} |`,
    `schemas of ${used('prometheus_operator_version')};`,
  ])
    expect(page).toContain(named);
});

test('the page of troubleshooting names only reasons and codes that the program has', () => {
  const page = textOf('docs/troubleshooting.md');
  const program = globSync('src/**/*.ts', { cwd: root }).map(textOf).join('\n');
  const named = [...page.matchAll(/`(?:\d{3} )?([A-Z][a-z]+[A-Z]\w+|[A-Z]+_[A-Z_]+|[a-z]+_[a-z_]+)`/g)].map(([, name = '']) => name);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !new RegExp(`\\b${name}\\b`).test(program))).toEqual([]);
});

describe.each(pages)('%s', (page) => {
  const prose = proseOf(page).join('\n');

  test('links only to files and headings that exist', () => {
    const broken: string[] = [];
    for (const [, target = ''] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : relative(root, join(root, dirname(page), path));
      if (!existsSync(join(root, file))) broken.push(target);
      else if (anchor !== undefined && !anchorsOf(file).has(anchor)) broken.push(target);
    }
    expect(broken).toEqual([]);
  });

  test('names only files and folders of the project that exist', () => {
    const missing: string[] = [];
    for (const [, path = ''] of prose.matchAll(/`\.?\/?((?:src|test|hack|config|charts|docs|crds)\/[\w./*-]*)`/g)) {
      const isThere = path.includes('*') ? globSync(path, { cwd: root }).length > 0 : existsSync(join(root, path));
      if (!isThere) missing.push(path);
    }
    expect(missing).toEqual([]);
  });
});
