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

test('V8 compiles what runs often only once the process has started and is busy for some time', () => {
  const modules = ['start-memory', 'readiness'].map((name) => new URL(`./${name}.ts`, import.meta.url).href);
  const traced = execFileSync(
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
       const whileStarting = (n) => n + 1 > 200 ? n * 3 : n % 7;
       const whileIdle = (n) => n + 2 > 200 ? n * 3 : n % 7;
       const whenBusy = (n) => n + 3 > 200 ? n * 3 : n % 7;
       let pass;
       const looks = async (what, times) => {
         for (let i = 0; i < times; i++) {
           if (what === 'busy') for (const endMs = performance.now() + 40; performance.now() < endMs; );
           else await moment(1500);
           pass();
         }
       };
       await often(whileStarting);
       const readiness = new Readiness(['redis']);
       const started = compileWhenBusy(readiness, { after: (ms, callback) => { pass = callback; } });
       readiness.set('redis', { ok: true });
       await started;
       await looks('busy', 3);
       await looks('idle', 1);
       await looks('busy', 3);
       await often(whileIdle);
       await looks('busy', 1);
       await often(whenBusy);`,
    ],
    { encoding: 'utf8' },
  );
  const compilersOf = (name: string) =>
    [...traced.matchAll(new RegExp(`completed compiling .*JSFunction ${name} .*target (\\w+)`, 'g'))].map(([, compiler]) => compiler);
  expect({ whileStarting: compilersOf('whileStarting'), whileIdle: compilersOf('whileIdle') }).toEqual({
    whileStarting: [],
    whileIdle: [],
  });
  expect(compilersOf('whenBusy')).toContain('TURBOFAN_JS');
});
