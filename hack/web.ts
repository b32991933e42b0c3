// Builds the console, src/web/, into a directory: hashed files, each also compressed with brotli and gzip, and the licences of the packages in it.
//
//   node hack/web.ts DIRECTORY                builds
//   node hack/web.ts --if-changed DIRECTORY   builds unless the directory was made of the same sources
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';
import { filesBelow, filesDigest } from './files-digest.ts';
import { webPackages } from './web-packages.ts';

const root = new URL('../src/web/', import.meta.url).pathname;
const compressible = /\.(?:js|css|svg)$/;
/** In a directory that was built: the digest of its sources. */
export const digestFile = 'sources.sha256';

/** Replaces the directory as a whole. Throws what Vite throws for sources that do not compile. */
export async function buildWeb(directory: string): Promise<void> {
  const outDir = resolve(directory);
  const [made, former] = [`${outDir}.new-${process.pid}`, `${outDir}.old-${process.pid}`];
  const digest = webSourcesDigest();
  try {
    await buildInto(made);
    writeFileSync(join(made, digestFile), digest);
    moveAway(outDir, former);
    renameSync(made, outDir);
  } catch (error) {
    // Another that builds the same may have come before.
    if (!isBuiltOf(digest, outDir)) throw error;
  } finally {
    for (const directory of [made, former]) rmSync(directory, { recursive: true, force: true });
  }
}

/** Does nothing where there is no such directory, or another process is first. */
function moveAway(directory: string, to: string): void {
  try {
    renameSync(directory, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Whether the directory was made of the sources as they are. */
export function isBuiltOf(digest: string, outDir: string): boolean {
  const file = join(outDir, digestFile);
  return existsSync(file) && readFileSync(file, 'utf8') === digest;
}

async function buildInto(outDir: string): Promise<void> {
  // Jest sets `test`, for which React adds its checks for development.
  process.env['NODE_ENV'] = 'production';
  const { build } = await import('vite');
  await build({
    root,
    // Relative: the base path is known only where the console is served.
    base: './',
    logLevel: 'warn',
    plugins: [licences()],
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2022',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      // test/console/budgets.test.ts bounds what the first load takes.
      chunkSizeWarningLimit: 1000,
      // Packages mark what runs in a browser; here everything does.
      rolldownOptions: { onLog: (level, log, handle) => (log.code === 'MODULE_LEVEL_DIRECTIVE' ? undefined : handle(level, log)) },
    },
  });
  for (const file of filesBelow(outDir)) {
    if (!compressible.test(file)) continue;
    const content = readFileSync(file);
    writeFileSync(`${file}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
    writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
  }
}

/** Writes licences.txt: the notice of each package that is in the build. A package that hack/web-packages.ts does not lead to fails the build. */
function licences(): Plugin {
  return {
    name: 'posthorn-licences',
    generateBundle(_options, bundle) {
      const modules = Object.values(bundle).flatMap((output) => (output.type === 'chunk' ? Object.keys(output.modules) : []));
      const packages = new Set(modules.flatMap((id) => /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? []));
      const notices = [...packages].sort().map(noticeOf);
      this.emitFile({ type: 'asset', fileName: 'licences.txt', source: notices.join(`\n${'-'.repeat(80)}\n\n`) });
    },
  };
}

function noticeOf(directory: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
  if (!webPackages().has(name)) throw new Error(`${name} is in the console, and hack/web-packages.ts does not lead to it`);
  const file = readdirSync(directory).find((each) => /^licen[cs]e(?:\.|$)/i.test(each));
  const text = file === undefined ? `Its package has no text of its licence.\n` : readFileSync(join(directory, file), 'utf8');
  return `${name} ${version} (${license})\n\n${text}`;
}

/** SHA-256 of the sources, and of the versions of the packages, that the console is built from. */
export function webSourcesDigest(): string {
  const lock = new URL('../package-lock.json', import.meta.url).pathname;
  return filesDigest(root, [...filesBelow(root), lock, import.meta.filename]);
}

if (import.meta.main) {
  const [first, second] = process.argv.slice(2);
  const outDir = second ?? first;
  if (outDir === undefined) throw new Error('usage: node hack/web.ts [--if-changed] DIRECTORY');
  if (first !== '--if-changed' || !isBuiltOf(webSourcesDigest(), outDir)) {
    console.error('hack/web.ts: building the console');
    await buildWeb(outDir);
  }
}
