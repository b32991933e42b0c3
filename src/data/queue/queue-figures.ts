import type { QueueFigures } from './delivery-queue.ts';

/** The figures of all shards together. */
export function figuresOfAll(shards: readonly QueueFigures[]): QueueFigures {
  const sum = (of: (each: QueueFigures) => number): number => shards.reduce((total, each) => total + of(each), 0);
  const oldest = shards.flatMap(({ oldestUnreadAtMs }) => (oldestUnreadAtMs === null ? [] : [oldestUnreadAtMs]));
  return {
    unfinished: sum(({ unfinished }) => unfinished),
    retriesWaiting: sum(({ retriesWaiting }) => retriesWaiting),
    held: sum(({ held }) => held),
    deadLetters: sum(({ deadLetters }) => deadLetters),
    oldestUnreadAtMs: oldest.length === 0 ? null : Math.min(...oldest),
    outboxEntries: sum(({ outboxEntries }) => outboxEntries),
    outboxAgeMs: Math.max(...shards.map(({ outboxAgeMs }) => outboxAgeMs)),
    backlog: sum(({ backlog }) => backlog),
  };
}
