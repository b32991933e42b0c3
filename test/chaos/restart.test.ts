import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const run = promisify(execFile);
const script = new URL('../../hack/bench/restart.ts', import.meta.url).pathname;

test('a rolling restart of two workers under load loses and repeats nothing; a kill of one loses nothing', async () => {
  // Ends with 1 when anything is lost or left, or comes again without having been held by a worker that was killed.
  const { stdout } = await run(process.execPath, [script, '9', '--short'], { timeout: 240_000 }).catch((error: { stdout?: string }) => {
    throw new Error(error.stdout, { cause: error });
  });
  expect(stdout).toContain('| rolling restart: lost / unexpected / duplicated | 0 / 0 / 0 |');
  expect(stdout).toContain('| kill -9 of one worker: lost / unexpected / duplicated | 0 / 0 / ');
  expect(stdout).toContain('| findings of posthorn check, unfinished messages | 0, 0 |');
}, 250_000);
