import { z } from 'zod';
import { compileCelSearch } from '../../../core/cel-filter.ts';
import { isPosthornError } from '../../../core/errors.ts';
import { replayedDeliveryStatuses, replayedEventStatuses, replayedMessageStatuses } from '../../../core/replay-statuses.ts';
import { attemptErrorTypes } from '../../../data/shard/attempt-record.ts';
import { endErrorTypes } from '../../../data/shard/message-conditions.ts';
import type { PosthornObject, SpecInputOf } from '../../../resources/kinds.ts';
import { text } from '../../../resources/text.ts';
import type { Call } from '../../http/operation.ts';
import { eventTypeIds, filterId } from '../../records/filter-ids.ts';
import { idOf, inCache } from '../../records/lookup.ts';
import { idOrSlug, isoTime } from '../../records/record-fields.ts';
import { reference } from '../../records/references.ts';
import { messageFilterOf } from '../shared/message-filters.ts';
import { inFilterWords, sentIds, sentOutcome, wrongInFilter } from '../shared/sent-filter.ts';

/** The filter of a replay in the words of the lists of deliveries and of messages. */

type Spec = PosthornObject<'Replay'>['spec'];

const id = text(1, 128);
const errorTypes: readonly string[] = [...attemptErrorTypes, 'circuit_open', ...endErrorTypes];

const fields = {
  id: sentIds,
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
  ...sentOutcome,
};

export const replayFilter = z.strictObject(fields).partial().meta({
  id: 'ReplayFilter',
  description: 'The filters of the list of deliveries, messages or events; all have to be met.',
});
type Sent = z.output<typeof replayFilter>;

/** The filter of a spec that a sent one means. VALIDATION_FAILED and INVALID_SOURCE name the field. What goes together, the rules of the kind say. */
export async function filterToSpec(call: Call, what: Spec['what'], sent: Sent): Promise<SpecInputOf<'Replay'>['filter']> {
  const { id, status, errorType, responseStatus, sourceId, routeId, destinationId, applicationId, endpointId, where, ...rest } = sent;
  const { eventType, attemptsMin, attemptsMax } = rest;
  const unknown = errorType?.find((each) => !errorTypes.includes(each));
  if (unknown !== undefined) throw wrongInFilter('errorType', `"${unknown}" is no type of error; there are ${errorTypes.join(', ')}`);
  const times = inFilterWords(() => {
    if (where !== undefined) compileCelSearch(where);
    return messageFilterOf(rest);
  });
  if (eventType !== undefined && what === 'messages') await known('eventType', () => eventTypeIds(call, eventType));
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

async function webhookId(call: Call, kind: 'WebhookApplication' | 'WebhookEndpoint', name: string, sent: string): Promise<string> {
  return (await known(name, () => filterId(call, kind, sent))) ?? sent;
}

/** Runs what is RESOURCE_NOT_FOUND for the unknown value of a field of the filter: then it is VALIDATION_FAILED. */
async function known<T>(name: string, find: () => Promise<T>): Promise<T> {
  try {
    return await find();
  } catch (error) {
    if (!isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
    throw wrongInFilter(name, `is none that the organization has: ${error.message.replace(/\.$/, '')}`);
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
