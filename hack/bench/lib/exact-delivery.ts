import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../../test/support/eventually.ts';
import { repeatedArrivals, type Sink, unexpectedArrivals } from './sink.ts';

/** Numbers of events. */
export interface Taken {
  /** Answered with 2xx. */
  accepted: Iterable<number>;
  /** Not answered, or with 5xx: such an event may have been stored. */
  uncertain: Iterable<number>;
}

export interface Received {
  sink: Pick<Sink, 'arrivals'>;
  /** What was sent for it since it has begun to count. */
  sent: readonly Taken[];
}

export interface Exactness {
  /** Accepted events that never came. */
  lost: number;
  /** Events that came and were refused, or not sent for this receiver. */
  unexpected: number;
  /** Arrivals of an event beyond the first. */
  duplicated: number;
}

export function compare(received: readonly Received[]): Exactness {
  const total = { lost: 0, unexpected: 0, duplicated: 0 };
  for (const { sink, sent } of received) {
    const { accepted, possible } = numbersOf(sent);
    total.lost += missing(accepted, sink.arrivals);
    total.unexpected += unexpectedArrivals([sink], possible);
    total.duplicated += repeatedArrivals([sink]);
  }
  return total;
}

/** Numbers of the events that must come, and of those that may. */
export function numbersOf(sent: readonly Taken[]): { accepted: Set<number>; possible: Set<number> } {
  const accepted = sent.flatMap((each) => [...each.accepted]);
  const uncertain = sent.flatMap((each) => [...each.uncertain]);
  return { accepted: new Set(accepted), possible: new Set([...accepted, ...uncertain]) };
}

/** How many of them are not in the other. */
export function missing<T>(of: Iterable<T>, from: { has(value: T): boolean }): number {
  return [...of].filter((each) => !from.has(each)).length;
}

/** What has come when nothing is lost any more, or after half a minute, and `quietMs` later, when what comes again has come, too. */
export function exactDelivery(received: readonly Received[], quietMs = 1000): Promise<Exactness> {
  return exactDeliveryOf(() => compare(received), quietMs);
}

/** The same by another comparison. */
export async function exactDeliveryOf(compared: () => Exactness, quietMs = 1000): Promise<Exactness> {
  await settled(30_000, () => compared().lost === 0);
  await sleep(quietMs);
  return compared();
}

/** Waits until it is so, at most so long; the check reports what is missing. */
export async function settled(maxMs: number, isSo: () => boolean): Promise<void> {
  await eventually('deliveries', maxMs, () => isSo()).catch(() => undefined);
}

export function sumOf(parts: readonly Exactness[]): Exactness {
  const sum = (of: (part: Exactness) => number): number => parts.reduce((total, part) => total + of(part), 0);
  return {
    lost: sum(({ lost }) => lost),
    unexpected: sum(({ unexpected }) => unexpected),
    duplicated: sum(({ duplicated }) => duplicated),
  };
}

export function exactnessRow({ lost, unexpected, duplicated }: Exactness, of = ''): [string, string] {
  return [`${of === '' ? '' : `${of}: `}lost / unexpected / duplicated`, `${lost} / ${unexpected} / ${duplicated}`];
}
