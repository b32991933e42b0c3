import { z } from 'zod';
import { celLimits, compileCelSearch } from '../../../core/cel-filter.ts';
import { isPosthornError, PosthornError } from '../../../core/errors.ts';
import { replayedDeliveryStatuses, replayedEventStatuses, replayedMessageStatuses } from '../../../core/replay-statuses.ts';
import { attemptErrorTypes } from '../../../data/shard/attempt-record.ts';
import { endErrorTypes } from '../../../data/shard/message-conditions.ts';
import type { PosthornObject, SpecInputOf } from '../../../resources/kinds.ts';
import { text } from '../../../resources/text.ts';
import type { Call } from '../../http/operation.ts';
import { queryTime } from '../../http/query.ts';
import { filterId } from '../../records/filter-ids.ts';
import { idOf, inCache } from '../../records/lookup.ts';
import { idOrSlug, isoTime } from '../../records/record-fields.ts';
import { reference } from '../../records/references.ts';
import { messageFilterOf, responseStatus } from '../shared/message-filters.ts';

/** The filter of a replay in the words of the lists of deliveries and of messages. */

type Spec = PosthornObject<'Replay'>['spec'];

const id = text(1, 128);
const attempts = z.int().min(0).max(1000);
const errorTypes: readonly string[] = [...attemptErrorTypes, 'circuit_open', ...endErrorTypes];

const fields = {
  id: z.array(id).min(1).max(100).describe('Ids.'),
  status: z
    .array(z.enum([...new Set([...replayedDeliveryStatuses, ...replayedMessageStatuses, ...replayedEventStatuses])]))
    .min(1)
    .max(8)
    .describe('Statuses. Default: dlq; of events no_routes and filtered.'),
  sourceId: idOrSlug.describe('Id or slug of a source; of events only.'),
  routeId: idOrSlug.describe('Id or slug of a route; not of messages.'),
  destinationId: idOrSlug.describe('Id or slug of a destination; not of messages.'),
  applicationId: id.describe('Of messages only.'),
  endpointId: id.describe('Of messages only.'),
  eventType: text(1, 128).describe('Name of an event type; of messages only.'),
  errorType: z.array(text(1, 64)).min(1).max(16).describe('Values of `lastErrorType`.'),
  responseStatus: z.array(responseStatus).min(1).max(20).describe('Statuses or classes of the last response.'),
  attemptsMin: attempts.describe('At least so many attempts.'),
  attemptsMax: attempts.describe('At most so many attempts.'),
  from: queryTime.describe('Created then or later.'),
  to: queryTime.describe('Created then or earlier.'),
  failedFrom: queryTime.describe('An attempt that began then or later failed.'),
  failedTo: queryTime.describe('An attempt that began then or earlier failed.'),
  where: text(1, celLimits.sourceLength).describe('CEL over event, labels, metadata and headers.'),
};

export const replayFilter = z.strictObject(fields).partial().meta({
  id: 'ReplayFilter',
  description: 'The filters of the list of deliveries, messages or events; all have to be met.',
});
type Sent = z.output<typeof replayFilter>;

/** The filter of a spec that a sent one means. VALIDATION_FAILED and INVALID_SOURCE name the field. What goes together, the rules of the kind say. */
export async function filterToSpec(call: Call, sent: Sent): Promise<SpecInputOf<'Replay'>['filter']> {
  const { id, status, errorType, responseStatus, sourceId, routeId, destinationId, applicationId, endpointId, where, ...rest } = sent;
  const { eventType, attemptsMin, attemptsMax } = rest;
  const unknown = errorType?.find((each) => !errorTypes.includes(each));
  if (unknown !== undefined) throw wrong('errorType', `"${unknown}" is no type of error; there are ${errorTypes.join(', ')}`);
  const times = inFilterWords(() => {
    if (where !== undefined) compileCelSearch(where);
    return messageFilterOf(rest);
  });
  return {
    ...(id !== undefined && { ids: [...new Set(id)] }),
    ...(status !== undefined && { statuses: [...new Set(status)] }),
    ...(sourceId !== undefined && { sourceRef: await reference(call, 'Source', 'filter.sourceId', sourceId, []) }),
    ...(routeId !== undefined && { routeRef: await reference(call, 'Route', 'filter.routeId', routeId, []) }),
    ...(destinationId !== undefined && {
      destinationRef: await reference(call, 'Destination', 'filter.destinationId', destinationId, []),
    }),
    ...(applicationId !== undefined && { applicationId: await webhookId(call, 'WebhookApplication', 'applicationId', applicationId) }),
    ...(endpointId !== undefined && { endpointId: await webhookId(call, 'WebhookEndpoint', 'endpointId', endpointId) }),
    ...(errorType !== undefined && { errorTypes: [...new Set(errorType)] }),
    ...(responseStatus !== undefined && { responseStatuses: [...new Set(responseStatus.map((each) => each.toLowerCase()))] }),
    ...timesToSpec(times),
    ...given({ eventType, attemptsMin, attemptsMax, where }),
  };
}

function wrong(name: string, complaint: string): PosthornError {
  return new PosthornError('VALIDATION_FAILED', `filter.${name} ${complaint}.`, { details: { [`filter.${name}`]: [complaint] } });
}

/** What is wrong with a parameter of a list is wrong with the field of the filter. */
function inFilterWords<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    const [[name, [complaint = '']] = ['', []]] = isPosthornError(error, 'INVALID_QUERY') ? Object.entries(error.details ?? {}) : [];
    throw name === '' ? error : wrong(name, complaint);
  }
}

async function webhookId(call: Call, kind: 'WebhookApplication' | 'WebhookEndpoint', name: string, sent: string): Promise<string> {
  try {
    return (await filterId(call, kind, sent)) ?? sent;
  } catch (error) {
    if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
    throw wrong(name, `is none that the organization has: ${error.message.replace(/\.$/, '')}`);
  }
}

/** A beginning before all times says nothing. */
function timesToSpec({ fromMs = 0, toMs, failedFromMs = 0, failedToMs }: ReturnType<typeof messageFilterOf>) {
  const times = { from: fromMs || undefined, to: toMs, failedFrom: failedFromMs || undefined, failedTo: failedToMs };
  return Object.fromEntries(Object.entries(times).flatMap(([name, ms]) => (ms === undefined ? [] : [[name, isoTime(ms)]])));
}

/** Without members that are undefined. */
function given<T extends object>(members: T): Partial<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Partial<T>;
}

/** What it reads as: references as ids, or as names where nothing is there any more. */
export function shownFilter({ filter }: Spec, call: Call): z.input<typeof replayFilter> {
  const { ids, statuses, sourceRef, routeRef, destinationRef, errorTypes, responseStatuses, ...same } = filter;
  return given({
    id: ids,
    status: statuses,
    sourceId: sourceRef && shownId(call, 'Source', sourceRef.name),
    routeId: routeRef && shownId(call, 'Route', routeRef.name),
    destinationId: destinationRef && shownId(call, 'Destination', destinationRef.name),
    errorType: errorTypes,
    responseStatus: responseStatuses,
    ...same,
  });
}

export function shownId(call: Call, kind: 'Source' | 'Route' | 'Destination', name: string): string {
  const object = inCache(call, kind, name);
  return object === undefined ? name : idOf(object);
}
