// Builds the console, src/web/, into the directory that the first argument names: hashed files, each also compressed with brotli and gzip.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';

const root = new URL('../src/web/', import.meta.url).pathname;
const compressible = /\.(?:html|js|css|svg)$/;

/** Throws what Vite throws for sources that do not compile. */
export async function buildWeb(outDir: string): Promise<void> {
  await build({
    root,
    // Relative: the base path is known only where the console is served.
    base: './',
    logLevel: 'warn',
    build: {
      outDir,
      emptyOutDir: true,
      target: 'es2022',
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
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

/** SHA-256 of the sources, and of the versions of the packages, that the console is built from. */
export function webSourcesDigest(): string {
  const digest = createHash('sha256');
  for (const file of [...filesBelow(root), new URL('../package-lock.json', import.meta.url).pathname, import.meta.filename]) {
    digest.update(relative(root, file)).update('\0').update(readFileSync(file));
  }
  return digest.digest('hex');
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

const [, , outDir] = process.argv;
if (import.meta.main && outDir !== undefined) await buildWeb(outDir);
