import { expect, test } from '@jest/globals';
import { FakeClock } from '../../test/support/fake-clock.ts';
import { PacedExecutor } from './paced-executor.ts';

function paced({ pausesPerScript = 2 } = {}) {
  const clock = new FakeClock(0);
  const pace = new PacedExecutor({ clock, pausesPerScript: () => pausesPerScript });
  const begun: string[] = [];
  const script = (name: string, ms: number, whom = 'a'): Promise<string> =>
    pace.runnerOf(whom).run(async () => {
      begun.push(`${name} ${clock.now()}`);
      await clock.sleep(ms);
      return name;
    });
  return { clock, pace, begun, script };
}

test('scripts run one at a time, and after each come pauses as long as it took', async () => {
  const { clock, begun, script } = paced();
  const both = Promise.all([script('one', 3), script('two', 10), script('three', 1)]);
  await clock.advance(100);
  expect(begun).toEqual(['one 0', 'two 9', 'three 39']);
  expect(await both).toEqual(['one', 'two', 'three']);
});

test('a script that hangs holds up the others no longer than 50 ms, and a pause', async () => {
  const { clock, begun, script } = paced();
  const hanging = script('hanging', 5000);
  void script('next', 1);
  await clock.advance(1000);
  expect(begun).toEqual(['hanging 0', 'next 100']);
  await clock.advance(5000);
  expect(await hanging).toBe('hanging');
});

test('a script that fails fails for its caller, and the next one has its turn', async () => {
  const { clock, pace, script } = paced();
  const failing = expect(pace.runnerOf('a').run(() => Promise.reject(new Error('away')))).rejects.toThrow('away');
  const next = script('next', 1);
  await clock.advance(10);
  await failing;
  expect(await next).toBe('next');
});

test('a script that throws fails for its caller, and the next one has its turn', async () => {
  const { clock, pace, script } = paced();
  const throwing = pace.runnerOf('a').run(() => {
    throw new Error('no script');
  });
  const next = script('next', 1);
  await expect(throwing).rejects.toThrow('no script');
  await clock.advance(10);
  expect(await next).toBe('next');
});

test('owners of waiting scripts are served round-robin', async () => {
  const { clock, begun, script } = paced({ pausesPerScript: 1 });
  for (const name of ['a1', 'a2', 'a3', 'a4']) void script(name, 5);
  await clock.advance(12);
  void script('b1', 5, 'b');
  void script('b2', 5, 'b');
  await clock.advance(100);
  expect(begun).toEqual(['a1 0', 'a2 10', 'a3 20', 'b1 30', 'a4 40', 'b2 50']);
});

test('scripts run one after the other where there are no pauses', async () => {
  const { clock, begun, script } = paced({ pausesPerScript: 0 });
  void script('one', 5);
  void script('two', 5);
  await clock.advance(20);
  expect(begun).toEqual(['one 0', 'two 5']);
});
