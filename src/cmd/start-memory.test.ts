import { execFileSync } from 'node:child_process';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
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

test('Turbofan compiles what runs often only once the process has started', () => {
  const modules = ['start-memory', 'readiness'].map((name) => new URL(`./${name}.ts`, import.meta.url).href);
  const traced = execFileSync(
    process.execPath,
    [
      '--trace-opt',
      '--input-type=module',
      '--eval',
      `import { compileWhenStarted, startWithoutCompilers } from '${modules[0]}';
       import { Readiness } from '${modules[1]}';
       startWithoutCompilers();
       const often = async (f) => {
         const run = () => { for (let i = 0; i < 300_000; i++) f(50); };
         run();
         await new Promise((resolve) => setTimeout(resolve, 50));
         run();
       };
       const early = (n) => { let s = 0; for (let i = 0; i < n; i++) s += (i * i) % 7; return s; };
       const late = (n) => { let s = 1; for (let i = 0; i < n; i++) s += (i * i) % 5; return s; };
       await often(early);
       console.log('starting');
       const readiness = new Readiness(['redis']);
       let settle;
       const started = compileWhenStarted(readiness, { after: (ms, callback) => { settle = callback; } });
       readiness.set('redis', { ok: true });
       await started;
       await often(early);
       console.log('ready');
       settle();
       await often(late);`,
    ],
    { encoding: 'utf8' },
  );
  const compiledByTurbofan = (traced: string, name: string) => new RegExp(`JSFunction ${name} .*TURBOFAN`).test(traced);
  const [starting = '', ready = '', settled = ''] = traced.split(/^(?:starting|ready)$/m);
  expect(compiledByTurbofan(starting + ready, 'early')).toBe(false);
  expect(compiledByTurbofan(settled, 'late')).toBe(true);
});
