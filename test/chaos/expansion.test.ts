import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const run = promisify(execFile);
const script = new URL('../../hack/chaos/expansion.ts', import.meta.url).pathname;

test('kills of the api and of workers in the middle of an event for thousands of endpoints lose and repeat nothing', async () => {
  // Ends with 1 when anything is lost, unfinished or in two places, comes again without having been under way, or no kill was in the middle.
  const { stdout } = await run(process.execPath, [script, '5000', '1', '--seed', '1', '--short'], { timeout: 240_000 });
  expect(stdout).toContain('| lost / twice under another webhook-id | 0 / 0 |');
  expect(stdout).toContain('| findings of posthorn check, unfinished messages | 0, 0 |');
}, 250_000);
