import type { EarlyEnds, QueueFigures, targetKinds } from './delivery-queue.ts';

/** The figures of all shards together. */
export function figuresOfAll(shards: readonly QueueFigures[]): QueueFigures {
  const sum = (of: (each: QueueFigures) => number): number => shards.reduce((total, each) => total + of(each), 0);
  const oldest = shards.flatMap(({ oldestUnreadAtMs }) => (oldestUnreadAtMs === null ? [] : [oldestUnreadAtMs]));
  return {
    unfinished: sum(({ unfinished }) => unfinished),
    retriesWaiting: sum(({ retriesWaiting }) => retriesWaiting),
    scheduled: sum(({ scheduled }) => scheduled),
    held: sum(({ held }) => held),
    deadLetters: sum(({ deadLetters }) => deadLetters),
    oldestUnreadAtMs: oldest.length === 0 ? null : Math.min(...oldest),
    outboxEntries: sum(({ outboxEntries }) => outboxEntries),
    outboxAgeMs: Math.max(...shards.map(({ outboxAgeMs }) => outboxAgeMs)),
    backlog: sum(({ backlog }) => backlog),
    earlyEnds: earlyEnds((reason, target) => sum((each) => each.earlyEnds[reason][target])),
  };
}

function earlyEnds(count: (reason: keyof EarlyEnds, target: (typeof targetKinds)[number]) => number): EarlyEnds {
  const byTarget = (reason: keyof EarlyEnds): EarlyEnds['expired'] => ({
    destination: count(reason, 'destination'),
    endpoint: count(reason, 'endpoint'),
  });
  return { cancelled: byTarget('cancelled'), expired: byTarget('expired') };
}

/** Of the fields of a shard's hash `early` (`includes/finish.lua`) and their values, one after the other. */
export function earlyEndsOf(fields: readonly unknown[]): EarlyEnds {
  const counts = new Map<unknown, number>();
  for (let i = 0; i < fields.length; i += 2) counts.set(fields[i], Number(fields[i + 1]));
  return earlyEnds((reason, target) => counts.get(`${reason} ${target}`) ?? 0);
}
