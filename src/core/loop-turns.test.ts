import { expect, test } from '@jest/globals';
import { LoopTurns } from './loop-turns.ts';

function work(milliseconds: number): void {
  const endMs = performance.now() + milliseconds;
  while (performance.now() < endMs);
}

test('Organizations alternate while both have work waiting, however many pieces of work one of them has', async () => {
  const turns = new LoopTurns();
  const order: string[] = [];
  const busy = async (organization: string, pieces: number): Promise<void> => {
    const turn = turns.of(organization);
    for (let i = 0; i < pieces; i++) {
      await turn.rest();
      order.push(organization);
      work(6);
    }
  };
  await Promise.all([busy('a', 4), busy('a', 4), busy('a', 4), busy('a', 4), busy('b', 8)]);
  const whileBothWait = order.slice(1, order.lastIndexOf('b'));
  expect(whileBothWait.filter((each, i) => each === whileBothWait[i + 1])).toEqual([]);
  expect(order.filter((each) => each === 'a')).toHaveLength(16);
});

test('The parts of an organization alternate while both have work waiting, and its webhooks and alerts have no turns beside its own', async () => {
  const turns = new LoopTurns();
  const order: string[] = [];
  const busy = async (organization: string, part: string): Promise<void> => {
    const turn = turns.of(organization, part);
    for (let i = 0; i < 3; i++) {
      await turn.rest();
      order.push(organization.replace(/^[+~]/, '') + part);
      work(6);
    }
  };
  await Promise.all([busy('a', '1'), busy('a', '1'), busy('a', '1'), busy('+a', '1'), busy('~a', '1'), busy('a', '2'), busy('b', '1')]);
  const ofSecond = order.slice(1, order.lastIndexOf('a2'));
  const ofBoth = ofSecond.filter((each) => each !== 'b1');
  expect(ofBoth.filter((each, i) => each === ofBoth[i + 1])).toEqual([]);
  const besideOther = order.slice(1, order.lastIndexOf('b1'));
  expect(besideOther.filter((each, i) => each.startsWith('a') && besideOther[i + 1]?.startsWith('a'))).toEqual([]);
});

test('The event loop serves others between two turns', async () => {
  const turns = new LoopTurns();
  const turn = turns.of('a');
  let served = 0;
  const serving = setInterval(() => void served++, 1);
  for (let i = 0; i < 10; i++) {
    await turn.rest();
    work(6);
  }
  clearInterval(serving);
  expect(served).toBeGreaterThanOrEqual(8);
  expect(turn.waits).toBeGreaterThanOrEqual(9);
});

test('Short work does not wait', async () => {
  let nowMs = 0;
  const turn = new LoopTurns(() => nowMs).of('a');
  for (let i = 0; i < 100; i++) await turn.rest();
  expect(turn.waits).toBe(0);
  nowMs = 5;
  await turn.rest();
  expect(turn.waits).toBe(1);
});

test('A generator runs to its end, with a rest where it yields', async () => {
  const turn = new LoopTurns().of('a');
  const result = await turn.run(
    (function* () {
      for (let i = 0; i < 3; i++) {
        work(6);
        yield;
      }
      return 'done';
    })(),
  );
  expect(result).toBe('done');
  expect(turn.waits).toBe(3);
});

test('What a generator throws rejects', async () => {
  const pieces = (function* (): Generator<undefined, void> {
    yield;
    throw new Error('broken');
  })();
  await expect(new LoopTurns().of('a').run(pieces)).rejects.toThrow('broken');
});

test('What runs side by side within one piece of work may rest at the same time', async () => {
  const turn = new LoopTurns().of('a');
  let ended = 0;
  const side = async (): Promise<void> => {
    for (let i = 0; i < 3; i++) {
      await turn.rest();
      work(6);
    }
    ended++;
  };
  await Promise.all([side(), side(), side()]);
  expect(ended).toBe(3);
});

test('What pauses shares 5 ms of a turn of the event loop with all others that do', async () => {
  const turns = new LoopTurns();
  const served: number[] = [];
  let ticks = 0;
  const count = (): void => {
    ticks++;
    if (served.length < 20) setImmediate(count);
  };
  setImmediate(count);
  const event = async (organization: string): Promise<void> => {
    const turn = turns.of(organization);
    const waiting = turn.pause();
    if (waiting !== null) await waiting;
    const startedMs = performance.now();
    work(3);
    turn.spend(performance.now() - startedMs);
    served.push(ticks);
  };
  await Promise.all(Array.from({ length: 20 }, (_, i) => event(`org ${i % 3}`)));
  const atOnce = Map.groupBy(served, (tick) => tick);
  expect(Math.max(...[...atOnce.values()].map(({ length }) => length))).toBeLessThanOrEqual(3);
});

test('Work that ends within 5 ms of a turn of the event loop leaves the rest of the turn to others, which alternate', async () => {
  let nowMs = 0;
  const turns = new LoopTurns(() => nowMs);
  const endedIn: number[] = [];
  const order: string[] = [];
  let loops = 0;
  let isOver = false;
  const count = (): void => {
    loops++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const begin = async (organization: string): Promise<void> => {
    const pieces = function* (): Generator<undefined, void> {
      yield;
      nowMs += 1;
    };
    await turns.of(organization).run(pieces());
    endedIn.push(loops);
    order.push(organization);
  };
  await Promise.all(['a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'b', 'b', 'c'].map(begin));
  isOver = true;
  const perLoop = [...Map.groupBy(endedIn, (loop) => loop).values()].map(({ length }) => length);
  expect(Math.max(...perLoop)).toBe(5);
  expect(perLoop.length).toBeLessThanOrEqual(4);
  expect(order.slice(5)).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a', 'a']);
});

test('Work that fails, or that nobody waits for, leaves its turn to others too', async () => {
  const turns = new LoopTurns(() => 0);
  let isNextLoop = false;
  setImmediate(() => {
    isNextLoop = true;
  });
  const failing = function* (): Generator<undefined, void> {
    yield;
    throw new Error('broken');
  };
  const abandoned = { aborted: true };
  const ended = await Promise.allSettled([
    turns.of('a').run(failing()),
    turns.of('b').run(failing(), abandoned),
    turns.of('c').run(failing()),
    turns.of('d').run(failing(), abandoned),
  ]);
  expect(ended.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'rejected']);
  expect(isNextLoop).toBe(false);
});
