// Compiles src/ into dist/, puts the Lua scripts beside the modules that load them, builds the console into dist/web/, and writes the software bill of materials. BASE_IMAGE names the
// image that it is built in.
//
//   node hack/build.ts                builds
//   node hack/build.ts --if-changed   builds unless dist/ was made of the same sources
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { filesBelow, filesDigest } from './files-digest.ts';
import { softwareBillOfMaterials } from './sbom.ts';
import { buildWeb } from './web.ts';

const digestFile = 'dist/sources.sha256';
const baseImage = process.env['BASE_IMAGE'];

/** Of the sources, of the versions of the packages, of what builds, and of the name of the base image. */
function sourcesDigest(): string {
  const builders = ['build.ts', 'files-digest.ts', 'sbom.ts', 'web-packages.ts', 'web.ts'].map((name) => `hack/${name}`);
  const settings = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'];
  return `${filesDigest('.', [...filesBelow('src'), ...builders, ...settings])} ${baseImage ?? ''}\n`;
}

async function build(digest: string): Promise<void> {
  rmSync('dist', { recursive: true, force: true });
  const compiler = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], { stdio: 'inherit' });
  if (compiler.status !== 0) process.exit(compiler.status ?? 1);
  cpSync('src', 'dist', {
    recursive: true,
    filter: (path) => path !== 'src/web' && (statSync(path).isDirectory() || path.endsWith('.lua')),
  });
  await buildWeb('dist/web');
  writeFileSync('dist/sbom.cdx.json', softwareBillOfMaterials(baseImage));
  // Last: a build that was interrupted has none.
  writeFileSync(digestFile, digest);
}

const digest = sourcesDigest();
const isBuilt = existsSync(digestFile) && readFileSync(digestFile, 'utf8') === digest;
if (!process.argv.includes('--if-changed') || !isBuilt) await build(digest);
