import { decodeEvent } from '../../src/data/shard/event-text.ts';
import { hashFields } from '../../src/data/shard/hash-fields.ts';
import { shardBase } from '../../src/data/shard/shard-keys.ts';
import type { RedisClient } from '../../src/redis/connection.ts';
import { type Behaviour, type Sink, startSink } from '../bench/lib/sink.ts';
import type { SteadySender } from './steady-sender.ts';

/** Slug of the source whose events have what senders may choose. */
export const choicesSource = 'choices';

/** Receivers of an ordered destination and of one without order, and headers that schedule events to them or let these expire. */
export interface Choices {
  sinks: readonly Sink[];
  /** Settings of the destinations, in the order of the sinks. */
  settings: readonly object[];
  headersOf(number: number): Record<string, string>;
  /** When each event came to each of the sinks for the first time, in ms since the epoch. */
  cameAtMs: readonly ReadonlyMap<number, number>[];
}

export async function startChoices(): Promise<Choices> {
  const cameAtMs = [new Map<number, number>(), new Map<number, number>()];
  const receive = (came: Map<number, number>): Behaviour => {
    return (_, response, number) => {
      if (!came.has(number)) came.set(number, Date.now());
      response.end();
    };
  };
  const sinks = await Promise.all(cameAtMs.map((came) => startSink(receive(came))));
  return { sinks, settings: [{ ordered: true }, {}], headersOf, cameAtMs };
}

/** One event in five is scheduled for 1 to 3 seconds later, one in five expires after a second. */
function headersOf(number: number): Record<string, string> {
  if (number % 5 === 1) return { 'x-posthorn-delay-seconds': String(1 + (number % 3)) };
  return number % 5 === 3 ? { 'x-posthorn-expires-after-seconds': '1' } : {};
}

export interface ChoicesVerdict {
  accepted: number;
  /** Deliveries that ended as `expired`. */
  expired: number;
  /** Deliveries of accepted events that neither came nor expired. */
  missing: number;
  /** Events that came to the ordered destination before one that was accepted earlier; scheduled ones are ignored. */
  outOfOrder: number;
  /** Deliveries that came before the time for which they were scheduled. */
  early: number;
}

/** Compares what came with the events in Redis. */
export async function checkChoices(
  { redis, prefix, shards }: { redis: RedisClient; prefix: string; shards: number },
  { sinks, cameAtMs }: Choices,
  { accepted }: Pick<SteadySender, 'accepted'>,
): Promise<ChoicesVerdict> {
  const found = (await Promise.all(Array.from({ length: shards }, (_, shard) => deliveriesIn(redis, shardBase(prefix, shard))))).flat();
  const expired = found.filter(({ hasExpired }) => hasExpired);
  const ended = [true, false].map(
    (isOrdered) => new Set(expired.filter((each) => each.isOrdered === isOrdered).map(({ number }) => number)),
  );
  const missing = sinks.flatMap(({ arrivals }, i) =>
    [...accepted].filter((number) => !arrivals.has(number) && ended[i]?.has(number) !== true),
  );
  const early = found.filter(({ number, isOrdered, notBeforeMs }) => {
    const atMs = cameAtMs[isOrdered ? 0 : 1]?.get(number);
    return notBeforeMs !== null && atMs !== undefined && atMs < notBeforeMs;
  });
  const places = new Map(
    found
      .filter(({ isOrdered, notBeforeMs }) => isOrdered && notBeforeMs === null)
      .sort((one, other) => one.acceptedAs - other.acceptedAs)
      .map(({ number }, place) => [number, place]),
  );
  const order = [...(sinks[0]?.arrivals.keys() ?? [])].flatMap((number) => places.get(number) ?? []);
  const outOfOrder = order.filter((place, i) => i > 0 && place < (order[i - 1] ?? 0));
  return {
    accepted: accepted.size,
    expired: expired.length,
    missing: missing.length,
    outOfOrder: outOfOrder.length,
    early: early.length,
  };
}

interface FoundDelivery {
  number: number;
  isOrdered: boolean;
  notBeforeMs: number | null;
  hasExpired: boolean;
  /** Grows in the order of acceptance in the shard. */
  acceptedAs: number;
}

async function deliveriesIn(redis: RedisClient, base: string): Promise<FoundDelivery[]> {
  const found: FoundDelivery[] = [];
  const { event, target, deadLetterReason, indexStamp } = hashFields.message;
  for (const key of await redis.keys(`${base}m:*`)) {
    const [eventKey, n, why, index] = await redis.hmget(key, event, target, deadLetterReason, indexStamp);
    const text = await redis.getBuffer(`${base}e:${eventKey}`);
    const stored = text === null ? null : decodeEvent(text);
    if (stored?.sourceSlug !== choicesSource) continue;
    found.push({
      number: (JSON.parse(stored.payload.toString()) as { number: number }).number,
      isOrdered: (await redis.sismember(`${base}ordered`, n ?? '')) === 1,
      notBeforeMs: stored.notBeforeMs,
      hasExpired: why === 'expired',
      acceptedAs: Number(index?.split('-')[1]),
    });
  }
  return found;
}
