import { execFileSync } from 'node:child_process';

const root = new URL('../../', import.meta.url).pathname;

/** The compiled program. `buildProgram` makes it. */
export const builtProgram = `${root}dist/cmd/posthorn.js`;

/** Builds the program unless `dist/` was made of the same sources. */
export function buildProgram(): void {
  execFileSync(process.execPath, ['hack/build.ts', '--if-changed'], { cwd: root, stdio: 'inherit' });
}
