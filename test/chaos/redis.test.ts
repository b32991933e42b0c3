import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const run = promisify(execFile);
const script = new URL('../../hack/chaos/redis.ts', import.meta.url).pathname;

// The script ends with 1 when something accepted is lost or in two places, a process ends, or ingest does not refuse.
test.each([
  // Long enough for the controller to lose the lock that it leads by.
  ['away for a while', ['away', '15']],
  ['silent, while its connections stay', ['frozen', '10']],
  ['emptied', ['emptied']],
  ['full', ['full', '24']],
  ['small, while finished history gives way', ['room', '20', '24']],
])(
  'Redis is %s',
  async (_, args) => {
    const { stdout } = await run(process.execPath, [script, ...args, '--short'], { timeout: 240_000 }).catch(
      (error: { stdout?: string }) => {
        throw new Error(error.stdout, { cause: error });
      },
    );
    expect(stdout).toContain('| findings of posthorn check, unfinished messages | 0, 0 |');
    expect(stdout).not.toContain('NOT AS IT MUST BE');
  },
  250_000,
);
