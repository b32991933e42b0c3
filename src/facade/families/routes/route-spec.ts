import { canonicalJson } from '../../../core/canonical-json.ts';
import { PosthornError } from '../../../core/errors.ts';
import { compileFilter } from '../../../core/filter-evaluation.ts';
import { kinds, type PosthornObject, type SpecInputOf, type SpecOf } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import type { ServedKind } from '../../http/services.ts';
import { byName, cachedObjects } from '../../records/lookup.ts';
import { clearableToSpec, nameToSpec } from '../../records/record-fields.ts';
import { type Ref, reference, refuseRepeated } from '../../records/resolved-reference.ts';
import { inApiWords } from '../../records/store-errors.ts';
import type { RouteBody } from './route-body.ts';
import { notificationsToSpec } from './route-notifications.ts';

type Spec = SpecOf<'Route'>;
type SpecInput = SpecInputOf<'Route'>;

const circuitSchema = kinds.Route.spec.shape.circuit.unwrap();
const defaultAfterAttempts = kinds.Route.spec.shape.failover.unwrap().shape.afterAttempts.parse(undefined);

/** References of a route, and other routes: a writer needs their current state. */
export const kindsReadByRouteWrites = [
  'Route',
  'Source',
  'Destination',
  'Filter',
  'Transform',
  'PayloadSchema',
  'NotificationChannel',
] as const satisfies readonly ServedKind[];

/**
 * The spec of a route from a body. INVALID_SOURCE for a source or destination that does not exist, DUPLICATE_ROUTE when
 * another route connects the same source with the same set of destinations. What is sent as it was is refused in no case.
 */
export async function routeToSpec(call: Call, sent: RouteBody, current: PosthornObject<'Route'> | undefined): Promise<SpecInput> {
  if (sent.destinationIds?.length === 0 && current?.spec.destinationRefs.length !== 0)
    throw new PosthornError('VALIDATION_FAILED', 'destinationIds must not be empty.');
  const spec = await specOfRoute(call, sent, current);
  if (current === undefined || connectionOf(spec) !== connectionOf(current.spec)) refuseDuplicate(call, current, spec);
  return spec;
}

/** The same without DUPLICATE_ROUTE. */
export async function specOfRoute(call: Call, sent: RouteBody, current: PosthornObject<'Route'> | undefined): Promise<SpecInput> {
  const spec = current?.spec;
  const sourceRef = spec?.sourceRef ?? (await reference(call, 'Source', 'sourceId', sent.sourceId ?? '', []));
  const filters = await filterOf(call, sent, spec);
  refuseIdleLogic(sent, spec?.filter, filters.filter);
  const destinationRefs =
    sent.destinationIds === undefined
      ? (spec?.destinationRefs ?? [])
      : await destinationList(call, 'destinationIds', sent.destinationIds, spec?.destinationRefs);
  const failover = await failoverOf(call, sent, spec?.failover);
  if (sent.destinationIds !== undefined || sent.failoverDestinationIds !== undefined) await refuseOrdered(call, destinationRefs, failover);
  return {
    ...spec,
    name: nameToSpec(sent.name, current),
    description: clearableToSpec(sent.description, spec?.description),
    sourceRef,
    destinationRefs,
    ...filters,
    transformRef: await optionalReference(call, 'Transform', 'transformId', sent.transformId, spec?.transformRef),
    schemaRef: await optionalReference(call, 'PayloadSchema', 'schemaId', sent.schemaId, spec?.schemaRef),
    priority: sent.priority ?? spec?.priority,
    enabled: sent.enabled ?? spec?.enabled,
    expectedResponse: clearableToSpec(sent.expectedResponse, spec?.expectedResponse),
    failover,
    circuit: circuitOf(sent, spec?.circuit),
    notifications: await notificationsToSpec(call, sent, spec?.notifications),
  };
}

async function filterOf(call: Call, sent: RouteBody, spec: Spec | undefined): Promise<Pick<SpecInput, 'filterRef' | 'filter'>> {
  const conditions = sent.filterConditions?.length === 0 ? null : sent.filterConditions;
  if (typeof sent.filterId === 'string' && Array.isArray(conditions)) {
    throw new PosthornError('VALIDATION_FAILED', 'filterId and filterConditions are alternatives: send one of them.');
  }
  if (Array.isArray(conditions)) {
    const filter = { logic: sent.filterLogic ?? spec?.filter?.logic ?? 'AND', conditions };
    if (canonicalJson(filter) !== canonicalJson(spec?.filter ?? null)) inApiWords('Route', () => compileFilter(filter));
    return { filterRef: undefined, filter };
  }
  if (typeof sent.filterId === 'string') {
    return {
      filterRef: await reference(call, 'Filter', 'filterId', sent.filterId, spec?.filterRef === undefined ? [] : [spec.filterRef]),
      filter: undefined,
    };
  }
  const inline = conditions === null ? undefined : spec?.filter;
  return {
    filterRef: sent.filterId === null ? undefined : spec?.filterRef,
    filter: inline === undefined ? undefined : { logic: sent.filterLogic ?? inline.logic, conditions: inline.conditions },
  };
}

/** VALIDATION_FAILED for a logic that has no conditions to go with; as it was shown it may be sent back. */
function refuseIdleLogic({ filterLogic: sent }: RouteBody, before: SpecInput['filter'], after: SpecInput['filter']): void {
  const shown = [before, after].map((filter) => filter?.logic ?? 'AND');
  if (sent !== undefined && !shown.includes(sent))
    throw new PosthornError('VALIDATION_FAILED', 'filterLogic is valid only with filterConditions: send both.');
}

async function failoverOf(call: Call, sent: RouteBody, current: Spec['failover']): Promise<SpecInput['failover']> {
  const { failoverDestinationIds: ids, failoverAfterAttempts } = sent;
  const afterAttempts = failoverAfterAttempts ?? current?.afterAttempts ?? defaultAfterAttempts;
  const isDefault = ids === undefined || ids.length === 0;
  if (current === undefined && isDefault && afterAttempts === defaultAfterAttempts) return undefined;
  const present = current?.destinationRefs ?? [];
  const destinationRefs = ids === undefined ? present : await destinationList(call, 'failoverDestinationIds', ids, present);
  return { destinationRefs, afterAttempts };
}

/** VALIDATION_FAILED for failover from or to a destination whose messages go out in order: those that move would leave it. */
async function refuseOrdered(call: Call, destinationRefs: readonly Ref[], failover: SpecInput['failover']): Promise<void> {
  const later = failover?.destinationRefs ?? [];
  if (later.length === 0) return;
  for (const { name } of [...destinationRefs, ...later]) {
    if ((await byName(call, 'Destination', name))?.spec.ordered !== true) continue;
    const why = `the destination "${name}" is ordered, and messages that move leave their order`;
    throw new PosthornError('VALIDATION_FAILED', `failoverDestinationIds cannot be set: ${why}.`);
  }
}

function circuitOf(sent: RouteBody, current: Spec['circuit']): SpecInput['circuit'] {
  const before = current ?? circuitSchema.parse({});
  const after = {
    failureThreshold: sent.circuitFailureThreshold ?? before.failureThreshold,
    cooldownSeconds: sent.circuitCooldownSeconds ?? before.cooldownSeconds,
    probeSuccessThreshold: sent.circuitProbeSuccessThreshold ?? before.probeSuccessThreshold,
  };
  const isAsBefore = canonicalJson(after) === canonicalJson(before);
  return isAsBefore ? current : after;
}

async function destinationList(call: Call, field: string, ids: readonly string[], current: readonly Ref[] = []): Promise<Ref[]> {
  const refs = await Promise.all(ids.map((id, index) => reference(call, 'Destination', `${field}[${index}]`, id, current)));
  refuseRepeated(field, 'Destination', refs);
  return refs;
}

/** Not sent: as it was; null: none. */
async function optionalReference(
  call: Call,
  kind: ServedKind,
  field: string,
  sent: string | null | undefined,
  current: Ref | undefined,
): Promise<Ref | undefined> {
  if (sent === undefined) return current;
  return sent === null ? undefined : reference(call, kind, field, sent, current === undefined ? [] : [current]);
}

function refuseDuplicate(call: Call, current: PosthornObject<'Route'> | undefined, wanted: SpecInput): void {
  const connection = connectionOf(wanted);
  const twin = cachedObjects(call, 'Route').find(
    ({ metadata, spec }) => metadata.uid !== current?.metadata.uid && connectionOf(spec) === connection,
  );
  if (twin !== undefined)
    throw new PosthornError('DUPLICATE_ROUTE', `The route "${twin.metadata.name}" connects the same source and destinations.`);
}

/** Equal for routes that connect the same source with the same set of destinations. */
export function connectionOf({ sourceRef, destinationRefs = [] }: Pick<SpecInput, 'sourceRef' | 'destinationRefs'>): string {
  return [sourceRef.name, ...destinationRefs.map(({ name }) => name).sort()].join(' ');
}
