// Compiles src/ into dist/ and puts the Lua scripts beside the modules that load them.
import { spawnSync } from 'node:child_process';
import { cpSync, rmSync, statSync } from 'node:fs';

rmSync('dist', { recursive: true, force: true });
const compiler = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], { stdio: 'inherit' });
if (compiler.status !== 0) process.exit(compiler.status ?? 1);
cpSync('src', 'dist', { recursive: true, filter: (path) => statSync(path).isDirectory() || path.endsWith('.lua') });
