import { execFileSync } from 'node:child_process';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { imageArguments } from '../../test/support/program.ts';
import { Readiness } from './readiness.ts';
import { releaseStartMemory } from './start-memory.ts';

test('what only starting needed is collected as soon as everything works, and not before', async () => {
  const readiness = new Readiness(['redis', 'worker']);
  const released = releaseStartMemory(readiness);
  const loaded = new WeakRef({ needed: 'while starting' });
  readiness.set('redis', { ok: true });
  await nextTurn();
  expect(loaded.deref()).toBeDefined();
  await nextTurn();
  readiness.set('worker', { ok: true });
  await released;
  await nextTurn();
  expect(loaded.deref()).toBeUndefined();
});

test('V8 compiles what runs often only once the process has started and is busy often enough', () => {
  const compilersOf = traced(`
    await often(function whileStarting(n) { return n + 1 > 200 ? n * 3 : n % 7; });
    const throughout = function throughout(n) { return n + 4 > 200 ? n * 3 : n % 7; };
    await often(throughout);
    readiness.set('redis', { ok: true });
    await started;
    await looks('busy', 3);
    await looks('idle', 8);
    await looks('busy', 1);
    await often(function whileIdle(n) { return n + 2 > 200 ? n * 3 : n % 7; });
    await looks('busy', 1);
    await often(function whenBusy(n) { return n + 3 > 200 ? n * 3 : n % 7; });
    await often(throughout);`);
  expect({ whileStarting: compilersOf('whileStarting'), whileIdle: compilersOf('whileIdle') }).toEqual({
    whileStarting: [],
    whileIdle: [],
  });
  expect(compilersOf('whenBusy')).toEqual(expect.arrayContaining(['MAGLEV', 'TURBOFAN_JS']));
  expect(compilersOf('throughout')).toContain('TURBOFAN_JS');
});

test('V8 compiles also what runs often while the process takes long to start', () => {
  const compilersOf = traced(`
    await looks('busy', 4);
    await often(function inTime(n) { return n + 1 > 200 ? n * 3 : n % 7; });
    waits.get(5000)();
    await started;
    await looks('busy', 4);
    await often(function afterLong(n) { return n + 2 > 200 ? n * 3 : n % 7; });`);
  expect(compilersOf('inTime')).toEqual([]);
  expect(compilersOf('afterLong')).toContain('TURBOFAN_JS');
});

/**
 * Runs a process as the image does, in which `started` is the result of compileWhenBusy. `often` runs a function often, `looks` lets
 * time pass in a busy or idle loop and checks it. Returns which compilers took a function.
 */
function traced(body: string): (name: string) => (string | undefined)[] {
  const modules = ['start-memory', 'readiness'].map((name) => new URL(`./${name}.ts`, import.meta.url).href);
  const output = execFileSync(
    process.execPath,
    [
      '--trace-opt',
      ...imageArguments(),
      '--input-type=module',
      '--eval',
      `import { compileWhenBusy } from '${modules[0]}';
       import { Readiness } from '${modules[1]}';
       const moment = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
       const often = async (f) => {
         for (let time = 0; time < 60; time++) {
           for (let i = 0; i < 500; i++) f(i);
           await moment(2);
         }
       };
       const waits = new Map();
       const looks = async (what, times) => {
         for (let i = 0; i < times; i++) {
           if (what === 'busy') for (const endMs = performance.now() + 40; performance.now() < endMs; );
           else await moment(500);
           const ms = [50, 250].find((each) => waits.has(each));
           const look = waits.get(ms);
           waits.delete(ms);
           look?.();
         }
       };
       const readiness = new Readiness(['redis']);
       const started = compileWhenBusy(readiness, {
         after: (ms, callback) => waits.set(ms, callback),
         sleep: (ms) => new Promise((resolve) => waits.set(ms, resolve)),
       });
       ${body}`,
    ],
    { encoding: 'utf8' },
  );
  return (name) =>
    [...output.matchAll(new RegExp(`completed compiling .*JSFunction ${name} .*target (\\w+)`, 'g'))].map(([, compiler]) => compiler);
}
