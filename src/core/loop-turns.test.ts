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

/** Turns by a clock that only work moves, with the number of the turn of the event loop. */
function clockedTurns() {
  const clock = { nowMs: 0, loop: 0 };
  let isOver = false;
  const count = (): void => {
    clock.loop++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const turns = new LoopTurns(() => clock.nowMs);
  const end = (): void => {
    isOver = true;
  };
  const pieces = function* (count: number, ms: number, each = () => {}): Generator<undefined, void> {
    for (let i = 0; i < count; i++) {
      clock.nowMs += ms;
      each();
      yield;
    }
  };
  return { clock, turns, pieces, end };
}

test('Work that ends within 5 ms of a turn of the event loop leaves the rest of the turn to others, which alternate', async () => {
  const { clock, turns, pieces, end } = clockedTurns();
  const endedIn: number[] = [];
  const order: string[] = [];
  const begin = async (organization: string): Promise<void> => {
    await turns.of(organization).run(pieces(1, 1));
    endedIn.push(clock.loop);
    order.push(organization);
  };
  await Promise.all(['a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'b', 'b', 'c'].map(begin));
  end();
  const perLoop = [...Map.groupBy(endedIn, (loop) => loop).values()].map(({ length }) => length);
  expect(Math.max(...perLoop)).toBe(5);
  expect(perLoop.length).toBeLessThanOrEqual(4);
  expect(order.join(' ')).toBe('a a a a b c a b a a a a a');
});

test('What gets the rest of a turn has no more than that, and no second turn before the others', async () => {
  const { clock, turns, pieces, end } = clockedTurns();
  const work: { of: string; loop: number; ms: number }[] = [];
  const run = (of: string, count: number, ms: number): Promise<void> =>
    turns.of(of).run(pieces(count, ms, () => void work.push({ of, loop: clock.loop, ms })));
  const short = async (): Promise<void> => {
    for (let i = 0; i < 4; i++) await run('a', 1, 3);
  };
  await Promise.all([run('first', 1, 5), short(), run('b', 40, 1)]);
  end();
  const perLoop = [...Map.groupBy(work, ({ loop }) => loop).values()].map((parts) => parts.reduce((sum, { ms }) => sum + ms, 0));
  // A piece that has begun ends.
  expect(Math.max(...perLoop)).toBeLessThan(5 + 3);
  const turnsOf = work.filter(({ of, loop }, i) => of !== work[i - 1]?.of || loop !== work[i - 1]?.loop).map(({ of }) => of);
  const whileBothWait = turnsOf.slice(1, turnsOf.lastIndexOf('a') + 1);
  expect(whileBothWait.filter((each, i) => each === whileBothWait[i + 1])).toEqual([]);
  expect(whileBothWait.filter((each) => each === 'a')).toHaveLength(4);
});

test('Work that rests before each of many short runs keeps its turn', async () => {
  const { turns, pieces, end } = clockedTurns();
  const turn = turns.of('a');
  const beside = turns.of('b').run(pieces(40, 1));
  for (let i = 0; i < 100; i++) {
    await turn.rest();
    await turn.run(pieces(1, 0.02));
    await turn.run(pieces(1, 0.02));
  }
  expect(turn.waits).toBe(1);
  await beside;
  end();
});

test('Work that fails, or that nobody waits for any more, leaves its turn to others too', async () => {
  const { clock, turns, pieces, end } = clockedTurns();
  const failing = function* (): Generator<undefined, void> {
    yield;
    throw new Error('broken');
  };
  const endedIn: number[] = [];
  const holder = turns.of('first').run(pieces(1, 5));
  const waiting = [undefined, { aborted: true }, undefined, { aborted: true }, undefined].map((signal, i) =>
    turns
      .of(`org ${i}`)
      .run(failing(), signal)
      .finally(() => endedIn.push(clock.loop)),
  );
  const ended = await Promise.allSettled([holder, ...waiting]);
  end();
  expect(ended.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected', 'rejected', 'rejected']);
  expect(new Set(endedIn).size).toBe(1);
});
