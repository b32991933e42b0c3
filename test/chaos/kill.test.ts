import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const run = promisify(execFile);
const script = new URL('../../hack/chaos/kill.ts', import.meta.url).pathname;

test('kills of the api, of a worker, of the controller and of Redis under load lose nothing', async () => {
  // Ends with 1 when anything is lost, unexpected, unfinished, in two places, or comes again without having been in flight at a kill.
  const { stdout } = await run(process.execPath, [script, '6', '--seed', '43', '--short'], { timeout: 240_000 });
  expect(stdout).toMatch(/lost \/ unexpected \/ duplicated \| 0 \/ 0 \/ \d+ /);
  expect(stdout).toMatch(/in flight when workers or Redis were killed or cut off; duplicated without that \| \d+; 0 /);
  expect(stdout).toMatch(/accepted \/ expired \/ missing \/ out of order \/ early \| [1-9]\d* \/ \d+ \/ 0 \/ 0 \/ 0 /);
  expect(stdout).toContain('| findings of posthorn check, unfinished messages | 0, 0 |');
}, 250_000);
