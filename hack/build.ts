// Compiles src/ into dist/, puts the Lua scripts beside the modules that load them, builds the console into dist/web/, and writes the software bill of materials. BASE_IMAGE names the
// image that it is built in.
//
//   node hack/build.ts                builds
//   node hack/build.ts --if-changed   builds unless dist/ was made of the same sources
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { filesBelow, filesDigest } from './files-digest.ts';
import { softwareBillOfMaterials } from './sbom.ts';
import { buildWeb, digestFile, isBuiltOf, webSourcesDigest } from './web.ts';

const baseImage = process.env['BASE_IMAGE'];

/** Digest of the sources, of the versions of the packages and of what builds, with the name of the base image. */
function sourcesDigest(): string {
  const builders = ['build.ts', 'files-digest.ts', 'sbom.ts', 'web-packages.ts', 'web.ts'].map((name) => `hack/${name}`);
  const settings = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'];
  return `${filesDigest('.', [...filesBelow('src'), ...builders, ...settings])} ${baseImage ?? ''}\n`;
}

function isBuilt(digest: string): boolean {
  // `hack/web.ts` alone may have put another console there.
  return isBuiltOf(digest, 'dist') && isBuiltOf(webSourcesDigest(), 'dist/web');
}

/** Beside `dist/`, which it replaces when it is whole: another build may be under way. */
async function build(digest: string): Promise<void> {
  const [made, replaced] = [`dist.new-${process.pid}`, `dist.old-${process.pid}`];
  try {
    const compiler = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', '--outDir', made];
    const { status } = spawnSync(process.execPath, compiler, { stdio: 'inherit' });
    if (status !== 0) {
      process.exitCode = status ?? 1;
      return;
    }
    cpSync('src', made, {
      recursive: true,
      filter: (path) => path !== 'src/web' && (statSync(path).isDirectory() || path.endsWith('.lua')),
    });
    await buildWeb(`${made}/web`);
    writeFileSync(`${made}/sbom.cdx.json`, softwareBillOfMaterials(baseImage));
    writeFileSync(`${made}/${digestFile}`, digest);
    if (existsSync('dist')) renameSync('dist', replaced);
    renameSync(made, 'dist');
  } catch (error) {
    // Another that builds the same may have come before.
    if (!isBuilt(digest)) throw error;
  } finally {
    for (const directory of [made, replaced]) rmSync(directory, { recursive: true, force: true });
  }
}

const digest = sourcesDigest();
if (!process.argv.includes('--if-changed') || !isBuilt(digest)) await build(digest);
