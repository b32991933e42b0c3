// The longest turns of the event loop, and the processor time of work on one input, that the tests bound:
//   node hack/bench/turns.ts [report 0/1]
// Runs those tests one after the other, each up to six times until it meets its goal, and keeps the best. On a quiet machine.
// Ends with 1 when a goal is not met, or a test fails.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Measured } from '../../test/support/short-work.ts';
import { ms, report } from './lib/report.ts';

const [isKept = 1] = process.argv.slice(2).map(Number);
const root = new URL('../..', import.meta.url).pathname;
const suites = ['src', 'test']
  .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)))
  .filter((file) => file.endsWith('.test.ts') && readFileSync(join(root, file), 'utf8').includes('/support/short-work.ts'));

const folder = mkdtempSync(join(tmpdir(), 'posthorn-turns-'));
try {
  const file = join(folder, 'measured');
  writeFileSync(file, '');
  const tests = spawn('npm', ['run', '--silent', 'test', '--', '--runInBand', '--runTestsByPath', ...suites], {
    cwd: root,
    env: { ...process.env, POSTHORN_TURNS_FILE: file },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = await once(tests, 'exit');
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const measured = lines.map((line): Measured => JSON.parse(line)).toSorted((one, other) => other.ms / other.goalMs - one.ms / one.goalMs);
  const missed = measured.filter(({ ms, goalMs }) => ms >= goalMs);
  report(isKept ? 'turns' : null, `${measured.length} measurements, those nearest to their goals`, [
    ...measured.slice(0, 30).map(({ test, goalMs, ms: took }): [string, string] => [test, `${ms(took)} of ${goalMs}`]),
    ['goals that are not met', String(missed.length)],
  ]);
  if (code !== 0 || missed.length > 0) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true });
}
