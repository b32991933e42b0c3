// Compiles src/ into dist/, puts the Lua scripts beside the modules that load them, builds the console into dist/web/, and writes the software bill of materials. BASE_IMAGE names the
// image that it is built in.
import { spawnSync } from 'node:child_process';
import { cpSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { softwareBillOfMaterials } from './sbom.ts';
import { buildWeb } from './web.ts';

rmSync('dist', { recursive: true, force: true });
const compiler = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], { stdio: 'inherit' });
if (compiler.status !== 0) process.exit(compiler.status ?? 1);
cpSync('src', 'dist', {
  recursive: true,
  filter: (path) => path !== 'src/web' && (statSync(path).isDirectory() || path.endsWith('.lua')),
});
await buildWeb('dist/web');
writeFileSync('dist/sbom.cdx.json', softwareBillOfMaterials(process.env['BASE_IMAGE']));
