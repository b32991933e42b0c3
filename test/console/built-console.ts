import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Where Posthorn serves the console from, when it runs from its sources. */
export const consoleDirectory = new URL('../../dist/web/', import.meta.url).pathname;

/** Builds it unless it is as the sources are. */
export async function buildConsole(): Promise<void> {
  await promisify(execFile)(process.execPath, [new URL('../../hack/web.ts', import.meta.url).pathname, '--if-changed', consoleDirectory]);
}
