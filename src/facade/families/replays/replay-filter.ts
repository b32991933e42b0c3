import { z } from 'zod';
import { compileCelSearch } from '../../../core/cel-filter.ts';
import { isPosthornError } from '../../../core/errors.ts';
import { replayedDeliveryStatuses, replayedEventStatuses, replayedMessageStatuses } from '../../../core/replay-statuses.ts';
import { attemptErrorTypes } from '../../../data/shard/attempt-record.ts';
import { endErrorTypes } from '../../../data/shard/message-conditions.ts';
import { listed, type OneOrMore } from '../../../data/shard/message-filter.ts';
import type { PosthornObject, SpecInputOf } from '../../../resources/kinds.ts';
import { text } from '../../../resources/text.ts';
import type { Call } from '../../http/operation.ts';
import { mapConcurrently } from '../../records/concurrently.ts';
import { eventTypeIds, filterIds } from '../../records/filter-ids.ts';
import { idOf, inCache } from '../../records/lookup.ts';
import { isoTime } from '../../records/record-fields.ts';
import { type Ref, reference } from '../../records/resolved-reference.ts';
import { messageFilterOf } from '../shared/message-filters.ts';
import { inFilterWords, sentIds, sentNames, sentOutcome, wrongInFilter } from '../shared/sent-filter.ts';

/** The filter of a replay in the words of the lists of deliveries and of messages. */

type Spec = PosthornObject<'Replay'>['spec'];

const errorTypes: readonly string[] = [...attemptErrorTypes, 'circuit_open', ...endErrorTypes];

const fields = {
  id: sentIds,
  status: z
    .array(z.enum([...new Set([...replayedDeliveryStatuses, ...replayedMessageStatuses, ...replayedEventStatuses])]))
    .min(1)
    .max(8)
    .describe('Statuses. Default: dlq; of events no_routes and filtered.'),
  sourceId: sentNames.describe('Ids or slugs of sources; of events only.'),
  routeId: sentNames.describe('Ids or slugs of routes; not of messages.'),
  destinationId: sentNames.describe('Ids or slugs of destinations; not of messages.'),
  applicationId: sentNames.describe('Ids of applications; of messages only.'),
  endpointId: sentNames.describe('Ids of endpoints; of messages only.'),
  eventType: sentNames.describe('Names of event types; of messages only.'),
  errorType: z.array(text(1, 64)).min(1).max(16).describe('Values of `lastErrorType`.'),
  ...sentOutcome,
};

export const replayFilter = z.strictObject(fields).partial().meta({
  id: 'ReplayFilter',
  description: 'The filters of the list of deliveries, messages or events; all have to be met.',
});
type Sent = z.output<typeof replayFilter>;

/** The spec filter of a sent filter. VALIDATION_FAILED and INVALID_SOURCE name the field. The rules of the kind define valid combinations. */
export async function filterToSpec(call: Call, what: Spec['what'], sent: Sent): Promise<SpecInputOf<'Replay'>['filter']> {
  const { id, status, errorType, responseStatus, sourceId, routeId, destinationId, applicationId, endpointId, where, ...rest } = sent;
  const { eventType, attemptsMin, attemptsMax } = rest;
  const unknown = errorType?.find((each) => !errorTypes.includes(each));
  if (unknown !== undefined) throw wrongInFilter('errorType', `"${unknown}" is no type of error; there are ${errorTypes.join(', ')}`);
  const times = inFilterWords(() => {
    if (where !== undefined) compileCelSearch(where);
    return messageFilterOf(rest);
  });
  if (what === 'messages') await mapConcurrently(listed(eventType), (each) => known('eventType', () => eventTypeIds(call, each)));
  return {
    ...(id !== undefined && { ids: [...new Set(id)] }),
    ...(status !== undefined && { statuses: [...new Set(status)] }),
    ...oneOrSeveral('sourceRef', await references(call, 'Source', 'sourceId', sourceId)),
    ...oneOrSeveral('routeRef', await references(call, 'Route', 'routeId', routeId)),
    ...oneOrSeveral('destinationRef', await references(call, 'Destination', 'destinationId', destinationId)),
    ...oneOrSeveral('applicationId', await webhookIds(call, 'WebhookApplication', 'applicationId', applicationId)),
    ...oneOrSeveral('endpointId', await webhookIds(call, 'WebhookEndpoint', 'endpointId', endpointId)),
    ...oneOrSeveral('eventType', [...new Set(listed(eventType))]),
    ...(errorType !== undefined && { errorTypes: [...new Set(errorType)] }),
    ...(responseStatus !== undefined && { responseStatuses: [...new Set(responseStatus.map((each) => each.toLowerCase()))] }),
    ...timesToSpec(times),
    ...given({ attemptsMin, attemptsMax, where }),
  };
}

/** The references that the spec has, without repeats. */
async function references(call: Call, kind: 'Source' | 'Route' | 'Destination', name: string, sent: OneOrMore | undefined): Promise<Ref[]> {
  const found = await mapConcurrently(listed(sent), (each) => reference(call, kind, `filter.${name}`, each, []));
  return found.filter((one, i) => found.findIndex((other) => other.name === one.name) === i);
}

async function webhookIds(
  call: Call,
  kind: 'WebhookApplication' | 'WebhookEndpoint',
  name: string,
  sent: OneOrMore | undefined,
): Promise<string[]> {
  return (await known(name, () => filterIds(call, kind, sent))) ?? [];
}

/** The field of the kind with one value, or that with several, which has its name with an s. One value makes the same spec however it was sent. */
function oneOrSeveral<Name extends 'sourceRef' | 'routeRef' | 'destinationRef' | 'applicationId' | 'endpointId' | 'eventType', Value>(
  name: Name,
  values: readonly Value[],
): { [One in Name]?: Value } & { [Several in `${Name}s`]?: Value[] } {
  const [first, ...others] = values;
  if (first === undefined) return {};
  return (others.length === 0 ? { [name]: first } : { [`${name}s`]: [...values] }) as { [One in Name]?: Value } & {
    [Several in `${Name}s`]?: Value[];
  };
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

/** A start before all times has no effect. */
function timesToSpec({ fromMs = 0, toMs, failedFromMs = 0, failedToMs }: ReturnType<typeof messageFilterOf>) {
  const times = { from: fromMs || undefined, to: toMs, failedFrom: failedFromMs || undefined, failedTo: failedToMs };
  return Object.fromEntries(Object.entries(times).flatMap(([name, ms]) => (ms === undefined ? [] : [[name, isoTime(ms)]])));
}

/** Without members that are undefined. */
function given<T extends object>(members: T): Partial<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Partial<T>;
}

/** The filter as read: references as ids, or as names where nothing is there any more. */
export function shownFilter({ filter }: Spec, call: Call): z.input<typeof replayFilter> {
  const { ids, statuses, sourceRef, sourceRefs, routeRef, routeRefs, destinationRef, destinationRefs, ...others } = filter;
  const { applicationId, applicationIds, endpointId, endpointIds, eventType, eventTypes, errorTypes, responseStatuses, ...same } = others;
  return given({
    id: ids,
    status: statuses,
    sourceId: shownIds(call, 'Source', sourceRef ?? sourceRefs),
    routeId: shownIds(call, 'Route', routeRef ?? routeRefs),
    destinationId: shownIds(call, 'Destination', destinationRef ?? destinationRefs),
    applicationId: applicationId ?? applicationIds,
    endpointId: endpointId ?? endpointIds,
    eventType: eventType ?? eventTypes,
    errorType: errorTypes,
    responseStatus: responseStatuses,
    ...same,
  });
}

function shownIds(call: Call, kind: 'Source' | 'Route' | 'Destination', named: Ref | readonly Ref[] | undefined) {
  if (named === undefined) return undefined;
  return 'name' in named ? shownId(call, kind, named.name) : named.map(({ name }) => shownId(call, kind, name));
}

export function shownId(call: Call, kind: 'Source' | 'Route' | 'Destination', name: string): string {
  const object = inCache(call, kind, name);
  return object === undefined ? name : idOf(object);
}
