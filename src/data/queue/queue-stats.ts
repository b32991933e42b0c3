import type { EarlyEnds, QueueStats, targetKinds } from './delivery-queue.ts';

/** The figures of all shards together. */
export function sumQueueStats(shards: readonly QueueStats[]): QueueStats {
  const sum = (of: (each: QueueStats) => number): number => shards.reduce((total, each) => total + of(each), 0);
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
    behindEarlier: sum(({ behindEarlier }) => behindEarlier),
  };
}

function earlyEnds(count: (reason: keyof EarlyEnds, target: (typeof targetKinds)[number]) => number): EarlyEnds {
  const byTarget = (reason: keyof EarlyEnds): EarlyEnds['expired'] => ({
    destination: count(reason, 'destination'),
    endpoint: count(reason, 'endpoint'),
  });
  return { cancelled: byTarget('cancelled'), expired: byTarget('expired') };
}
