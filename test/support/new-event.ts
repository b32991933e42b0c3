import { newTimedId } from '../../src/core/ids.ts';
import type { NewEvent } from '../../src/data/shard/messages.ts';

/** An event as ingest makes it, for one route and destination each of `targets`. */
export function newEvent(
  changes: Partial<NewEvent> & {
    destinations?: string[];
    filteredRoutes?: string[];
    invalidRoutes?: Record<string, string>;
    maxAttempts?: number;
  } = {},
): NewEvent {
  const { destinations = ['dst_a'], filteredRoutes = [], invalidRoutes = {}, maxAttempts = 3, ...rest } = changes;
  const receivedAtMs = Date.now();
  return {
    id: newTimedId('evt_', 0, receivedAtMs),
    org: 'org_a',
    sourceId: 'src_a',
    sourceSlug: 'shop',
    receivedAtMs,
    method: 'POST',
    contentType: 'application/json',
    headers: [['content-type', 'application/json']],
    payload: Buffer.from('{"a":1}'),
    signatureValid: null,
    duplicateOf: null,
    targets: destinations.map((destinationId) => ({
      messageId: newTimedId('msg_', 0, receivedAtMs),
      routeId: 'rte_a',
      destinationId,
      shard: 0,
      maxAttempts,
    })),
    invalid: Object.entries(invalidRoutes).map(([routeId, brokenSchema]) => ({
      messageId: newTimedId('msg_', 0, receivedAtMs),
      routeId,
      brokenSchema,
    })),
    filtered: filteredRoutes.map((routeId) => ({ routeId })),
    ...rest,
  };
}

export function eventForShards(targetShards: readonly number[]): NewEvent {
  const nowMs = Date.now();
  const targets = targetShards.map((shard, i) => ({
    messageId: newTimedId('msg_', shard, nowMs),
    routeId: `rte_${i}`,
    destinationId: `dst_${shard}`,
    shard,
    maxAttempts: 3,
  }));
  return newEvent({ id: newTimedId('evt_', targetShards[0] ?? 0, nowMs), targets });
}
