import { createHash } from 'node:crypto';
import { canonicalJson } from '../core/canonical-json.ts';
import { compileCelSearch } from '../core/cel-filter.ts';
import { isPosthornError } from '../core/errors.ts';
import { hopOfObject } from '../core/hops.ts';
import { resourceId } from '../core/ids.ts';
import { recordLayoutVersion } from '../core/records.ts';
import type { OneOrSeveral, ReplayFilter, ReplayRecord } from '../core/replay-record.ts';
import { replayedEventStatuses } from '../core/replay-statuses.ts';
import { statusRange } from '../core/status-range.ts';
import { canonicalValue } from '../resources/canonical-value.ts';
import type { PosthornObject, SpecOf } from '../resources/kinds.ts';
import { replay as definition } from '../resources/replay.ts';
import { type Compiled, refuse } from './compiled.ts';
import type { OrganizationFacts } from './organization.ts';

type Replay = Pick<PosthornObject<'Replay'>, 'metadata' | 'spec'>;

export interface ReplayInputs {
  organization: Pick<OrganizationFacts, 'id'>;
  /** Ids of what `spec.filter` and `spec.destinationRef` name; undefined where they name nothing. */
  filterSourceId: OneOrSeveral | undefined;
  filterRouteId: OneOrSeveral | undefined;
  filterDestinationId: OneOrSeveral | undefined;
  destinationId: string | undefined;
}

const defaultStatuses = { deliveries: ['dlq'], messages: ['dlq'], events: replayedEventStatuses } as const;

/** Refuses a `where` that does not compile. Times become milliseconds since the epoch, classes such as `5xx` ranges. */
export function compileReplay(object: Replay, inputs: ReplayInputs): Compiled<ReplayRecord> {
  const { metadata, spec } = object;
  const complaint = spec.filter.where === undefined ? null : whereComplaint(spec.filter.where);
  if (complaint !== null) return refuse('InvalidFilter', `spec.filter.where: ${complaint}`);
  const { destinationId } = inputs;
  const hop = hopOfObject(metadata);
  const record: ReplayRecord = {
    v: recordLayoutVersion,
    id: resourceId(definition.idPrefix, metadata),
    org: inputs.organization.id,
    slug: metadata.name,
    uid: metadata.uid,
    identity: replayIdentity(object, inputs.organization),
    what: spec.what,
    filter: filterOf(spec, inputs),
    ratePerSecond: spec.ratePerSecond,
    ...(destinationId !== undefined && { destinationId }),
    ...(spec.stopAfterFailurePercent !== undefined && { stopAfterFailurePercent: spec.stopAfterFailurePercent }),
    ...(hop !== null && { hop }),
    isDryRun: spec.dryRun,
    isSuspended: spec.suspend,
    isCancelled: spec.cancel,
    createdAtMs: Date.parse(metadata.creationTimestamp),
    generation: metadata.generation,
  };
  return { record };
}

function filterOf(
  { what, filter }: Pick<SpecOf<'Replay'>, 'what' | 'filter'>,
  { filterSourceId, filterRouteId, filterDestinationId }: Pick<ReplayInputs, 'filterSourceId' | 'filterRouteId' | 'filterDestinationId'>,
): ReplayFilter {
  const { ids, statuses = defaultStatuses[what], responseStatuses, errorTypes } = filter;
  const applicationId = filter.applicationId ?? filter.applicationIds;
  const endpointId = filter.endpointId ?? filter.endpointIds;
  const eventType = filter.eventType ?? filter.eventTypes;
  const { attemptsMin, attemptsMax, from, to, failedFrom, failedTo, where } = filter;
  return {
    ...(ids !== undefined && { ids: [...ids] }),
    statuses: [...statuses],
    ...(filterSourceId !== undefined && { sourceId: filterSourceId }),
    ...(filterRouteId !== undefined && { routeId: filterRouteId }),
    ...(filterDestinationId !== undefined && { destinationId: filterDestinationId }),
    ...(applicationId !== undefined && { applicationId }),
    ...(endpointId !== undefined && { endpointId }),
    ...(eventType !== undefined && { eventType }),
    ...(errorTypes !== undefined && { errorTypes: [...errorTypes] }),
    ...(responseStatuses !== undefined && { responseStatuses: responseStatuses.map(statusRange) }),
    ...(attemptsMin !== undefined && { attemptsMin }),
    ...(attemptsMax !== undefined && { attemptsMax }),
    ...(from !== undefined && { fromMs: Date.parse(from) }),
    ...(to !== undefined && { toMs: Date.parse(to) }),
    ...(failedFrom !== undefined && { failedFromMs: Date.parse(failedFrom) }),
    ...(failedTo !== undefined && { failedToMs: Date.parse(failedTo) }),
    ...(where !== undefined && { where }),
  };
}

function whereComplaint(where: string): string | null {
  try {
    compileCelSearch(where);
    return null;
  } catch (error) {
    if (isPosthornError(error, 'INVALID_QUERY')) return error.details?.['where']?.join('; ') ?? error.message;
    throw error;
  }
}

/**
 * SHA-256, in hexadecimal, over the organization, the name and the spec without `suspend` and `cancel`. Fields that have their default count as absent,
 * so that a field that a later version adds does not make another replay of each that has run.
 */
export function replayIdentity({ metadata, spec }: Replay, { id }: Pick<OrganizationFacts, 'id'>): string {
  const { suspend: _, cancel: __, ...what } = spec;
  const identity = canonicalJson({ org: id, name: metadata.name, spec: canonicalValue(definition.spec, what) });
  return createHash('sha256').update(identity).digest('hex');
}
