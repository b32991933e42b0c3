import { describe, expect, test } from '@jest/globals';
import { type ConsumerMode, ConsumerState } from './consumer-state.ts';

type Event = 'start' | 'noteWork' | 'noteLoss' | 'beginTake' | 'endTake' | 'failTake' | 'resume' | 'stop';

const events: readonly Event[] = ['start', 'noteWork', 'noteLoss', 'beginTake', 'endTake', 'failTake', 'resume', 'stop'];
/** How each mode is reached. */
const ways: Record<ConsumerMode, readonly Event[]> = {
  starting: [],
  idle: ['start'],
  ready: ['start', 'noteWork'],
  recovering: ['start', 'noteLoss'],
  dequeuing: ['start', 'noteWork', 'beginTake'],
  adopting: ['start', 'noteLoss', 'beginTake'],
  'backing-off': ['start', 'noteWork', 'beginTake', 'failTake'],
  stopped: ['start', 'stop'],
};
/** Where each event leads from there. What is not named throws. */
const transitions: Record<ConsumerMode, Partial<Record<Event, ConsumerMode>>> = {
  starting: { start: 'idle', noteWork: 'starting', noteLoss: 'starting', stop: 'stopped' },
  idle: { noteWork: 'ready', noteLoss: 'recovering', stop: 'stopped' },
  ready: { noteWork: 'ready', noteLoss: 'recovering', beginTake: 'dequeuing', stop: 'stopped' },
  recovering: { noteWork: 'recovering', noteLoss: 'recovering', beginTake: 'adopting', stop: 'stopped' },
  dequeuing: { noteWork: 'dequeuing', noteLoss: 'dequeuing', endTake: 'idle', failTake: 'backing-off' },
  adopting: { noteWork: 'adopting', noteLoss: 'adopting', endTake: 'idle', failTake: 'backing-off' },
  'backing-off': { noteWork: 'backing-off', noteLoss: 'backing-off', resume: 'ready', stop: 'stopped' },
  stopped: { noteWork: 'stopped', noteLoss: 'stopped' },
};

function reached(steps: readonly Event[]) {
  let signals = 0;
  const state = new ConsumerState({
    signal: () => {
      signals++;
    },
  });
  for (const step of steps) state[step]();
  return { state, signals: () => signals };
}
const modes = Object.keys(ways) as ConsumerMode[];

test.each(modes)('the mode %s is reached', (mode) => {
  const { state } = reached(ways[mode]);
  expect(state.mode).toBe(mode);
  expect(state.wantsToTake).toBe(mode === 'ready' || mode === 'recovering');
});

describe.each(modes)('from the mode %s', (mode) => {
  test.each(events)('the event %s leads where it may, or throws and changes nothing', (event) => {
    const { state } = reached(ways[mode]);
    const expected = transitions[mode][event];
    if (expected === undefined) expect(() => state[event]()).toThrow(`while it is ${mode}`);
    else state[event]();
    expect(state.mode).toBe(expected ?? mode);
  });
});

test.each<[what: string, steps: readonly Event[], mode: ConsumerMode]>([
  ['work before the start', ['noteWork', 'start'], 'ready'],
  ['a loss before the start', ['noteLoss', 'noteWork', 'start'], 'recovering'],
  ['work during a dequeue', ['start', 'noteWork', 'beginTake', 'noteWork', 'endTake'], 'ready'],
  ['a loss during a dequeue', ['start', 'noteWork', 'beginTake', 'noteLoss', 'noteWork', 'endTake'], 'recovering'],
  ['work before a loss, which is found', ['start', 'noteWork', 'noteLoss', 'beginTake', 'endTake'], 'ready'],
  ['a loss that an adoption under way finds', ['start', 'noteLoss', 'beginTake', 'noteLoss', 'endTake'], 'idle'],
  ['a loss that an adoption failed to find', ['start', 'noteLoss', 'beginTake', 'failTake', 'resume'], 'recovering'],
  ['a loss during the back-off', ['start', 'noteWork', 'beginTake', 'failTake', 'noteLoss', 'resume'], 'recovering'],
  ['work of a dequeue that failed', ['start', 'noteWork', 'beginTake', 'failTake', 'resume'], 'ready'],
])('%s decides the next mode', (_, steps, mode) => {
  expect(reached(steps).state.mode).toBe(mode);
});

describe('pressing work', () => {
  test('pressing work stays pressing when further work is recorded, until a dequeue takes it', () => {
    const { state } = reached(['start']);
    state.noteWork({ isPressing: true });
    state.noteWork();
    expect(state.isPressing).toBe(true);
    state.beginTake();
    expect(state.isPressing).toBe(false);
    state.noteWork({ isPressing: true });
    state.endTake();
    expect([state.mode, state.isPressing]).toEqual(['ready', true]);
  });

  test.each<[steps: readonly Event[]]>([[['start']], [['start', 'noteLoss']]])(
    'pressing work is pressing again after a failed take (%s)',
    (steps) => {
      const { state } = reached(steps);
      state.noteWork({ isPressing: true });
      state.beginTake();
      state.failTake();
      state.resume();
      expect([state.wantsToTake, state.isPressing]).toEqual([true, true]);
    },
  );

  test('pressing work is only work after a failed take of work that was not', () => {
    expect(reached(['start', 'noteWork', 'beginTake', 'failTake', 'resume']).state.isPressing).toBe(false);
  });
});

test.each<[steps: readonly Event[], signals: number]>([
  [['start'], 0],
  [['noteWork', 'noteLoss'], 0],
  [['noteWork', 'start'], 1],
  [['start', 'noteWork', 'noteWork', 'noteLoss'], 3],
  [['start', 'noteWork', 'beginTake', 'noteWork', 'noteLoss', 'endTake'], 1],
  [['start', 'noteWork', 'beginTake', 'failTake', 'noteWork', 'resume'], 2],
  [['start', 'stop', 'noteWork', 'noteLoss'], 0],
])('after %s the wakeup was signalled so often as a take came to make sense: %i', (steps, signals) => {
  expect(reached(steps).signals()).toBe(signals);
});
