import type { TimeRange } from '../shard/index-pages.ts';
import { filterScope, isOfFailures, meetsFilter, outcomeConditions, readRange } from '../shard/message-conditions.ts';
import { isAmong, listed, type OneOrMore } from '../shard/message-filter.ts';
import type { DeliveryFilter, DeliveryStatus, DeliveryView } from '../shard/messages.ts';
import type { IndexConditions } from '../shard/shard-reader.ts';
import { lettersOf } from './message-view.ts';

/** Statuses of messages that are all in the index of failures. */
const failedStatuses: ReadonlySet<DeliveryStatus> = new Set(['retrying', 'failed', 'schema_failed', 'transform_failed', 'dlq']);
const endedStatuses: ReadonlySet<DeliveryStatus> = new Set(['failed', 'schema_failed', 'transform_failed', 'dlq', 'delivered', 'filtered']);
const waitingStatuses: ReadonlySet<DeliveryStatus> = new Set(['pending', 'processing']);

/** Index of filter results (`includes/packed.lua`), which are in no index of their route. */
export function packIndex(org: string): string {
  return `i:pk:${org}`;
}

/** How a list of deliveries is read. */
export interface DeliveryReading {
  index: OneOrMore;
  conditions: IndexConditions | undefined;
  /** Second index, of filter results; absent: none belongs to the list, or `index` has them. */
  besides: { index: string; conditions: IndexConditions } | undefined;
  scope: readonly (string | undefined)[];
  /** Range of the stamps of the index: creation times, or in the index of a destination the arrival times, which after a failover are later. */
  range: TimeRange;
  /** Whether every member is in the index of failures, but for those that are read separately. */
  hasFailed: boolean;
  /** Whether members of a batch that waits for its next attempt may be among them. */
  hasBatchMembers: boolean;
  /** Whether every member waits for its first attempt or has one under way. */
  isWaiting: boolean;
  /** Whether every member waits for an open circuit. False for a list with a latest creation time: indexes of destinations may have later stamps. */
  waitsForCircuits: boolean;
}

export function deliveryReading(org: string, filter: DeliveryFilter): DeliveryReading {
  const { routeId, destinationId, statuses } = filter;
  const narrow = destinationId ?? routeId;
  const outcome = outcomeConditions(filter);
  const isNarrowed = statuses !== undefined || outcome !== null || (routeId !== undefined && destinationId !== undefined);
  const letters = statuses === undefined ? '' : [...new Set(statuses.flatMap((status) => [...lettersOf[status]]))].join('');
  const mayBeFiltered = destinationId === undefined && (statuses === undefined || statuses.includes('filtered'));
  const areUnsuccessful = statuses?.every((status) => status === 'filtered' || failedStatuses.has(status)) ?? false;
  const areEnded = statuses?.every((status) => endedStatuses.has(status)) ?? false;
  // The two indexes that have them are complete; the index of the organization may have been cut.
  const areFailuresAndResults = narrow === undefined && mayBeFiltered && areUnsuccessful && areEnded;
  // Dead letters are in their own index by the time of their end; a range of time means that of their beginning.
  const isDead =
    narrow === undefined &&
    statuses?.every((status) => status === 'dlq') === true &&
    filter.fromMs === undefined &&
    filter.toMs === undefined;
  const hasResultsApart = mayBeFiltered && (routeId !== undefined || areFailuresAndResults);
  return {
    index:
      narrow !== undefined
        ? listed(narrow).map((id) => `i:${id}`)
        : areFailuresAndResults
          ? `i:bad:${org}`
          : isDead
            ? `i:dead:${org}`
            : `i:${org}`,
    conditions: isNarrowed ? { statuses: letters, routeId, destinationId, outcome } : undefined,
    besides: hasResultsApart ? { index: packIndex(org), conditions: { statuses: lettersOf.filtered, routeId, outcome } } : undefined,
    scope: [org, joinedScope(routeId), joinedScope(destinationId), statuses?.toSorted().join(','), ...filterScope(filter)],
    range: isDead ? {} : readRange(destinationId === undefined ? filter : { fromMs: filter.fromMs, toMs: filter.toMs }),
    hasFailed: !isDead && !areFailuresAndResults && (isOfFailures(filter) || (areUnsuccessful && (narrow !== undefined || !mayBeFiltered))),
    hasBatchMembers: !areEnded,
    isWaiting: statuses?.every((status) => waitingStatuses.has(status)) ?? false,
    waitsForCircuits: narrow === undefined && filter.toMs === undefined && statuses?.every((status) => status === 'circuit_open') === true,
  };
}

/** Represents ids in the scope of cursors. */
export function joinedScope(ids: OneOrMore | undefined): string | undefined {
  return ids === undefined ? undefined : listed(ids).toSorted().join(',');
}

/**
 * Whether a delivery that has failed over is shown from the index of its first destination, and not from this one. There it is indexed by creation,
 * which may be before the range of the list.
 */
export function isShownFirst({ destinationId: wanted, fromMs = 0 }: DeliveryFilter, view: DeliveryView, index: string): boolean {
  const { destinationId, failedOverFrom, createdAtMs } = view;
  const isThere = failedOverFrom !== null && failedOverFrom !== destinationId && index === `i:${destinationId}`;
  return isThere && listed(wanted).includes(failedOverFrom) && createdAtMs >= fromMs;
}

/** Whether the filter lets a delivery pass, but for the times of its attempts. */
export function meetsDeliveryFilter(org: string, filter: DeliveryFilter, view: DeliveryView): boolean {
  const { routeId, destinationId, statuses } = filter;
  return (
    view.org === org &&
    isAmong(routeId, view.routeId) &&
    (isAmong(destinationId, view.destinationId) || isAmong(destinationId, view.failedOverFrom)) &&
    (statuses === undefined || statuses.includes(view.status)) &&
    meetsFilter(filter, view)
  );
}
