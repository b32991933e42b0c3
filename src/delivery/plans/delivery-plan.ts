import { accountOf } from '../../core/account.ts';
import { organizationBehind, routeOfMailTarget } from '../../core/alert.ts';
import type { AttemptDetailMode } from '../../core/attempt-detail-mode.ts';
import type { Clock } from '../../core/clock.ts';
import { egressRules, type InstallationEgress } from '../../core/egress-policy.ts';
import type { PayloadLinks } from '../../core/payload-link.ts';
import type { DestinationRecord, OrganizationRecord, RetryPolicyRecord, RouteRecord, TransformRecord } from '../../core/records.ts';
import { organizationOfWebhooks } from '../../core/webhook.ts';
import type { DeletedTargetFailover, Target, TargetSetting } from '../../data/queue/delivery-queue.ts';
import { hasOwnSource, makesOwnEvents, ownSourcesKey } from '../../data/registry/own-sources.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import type { DeadLetterReason } from '../../data/shard/messages.ts';
import type { PauseReason } from '../../data/shard/waits.ts';
import type { AlertMailer } from '../targets/channel/alert-mailer.ts';
import { type HttpPlan, httpPlan } from '../targets/http/http-plan.ts';
import { layoutText } from '../targets/warehouse/batch-layout.ts';
import { type RefusedWarehouse, type WarehousePlan, type WarehouseSources, warehousePlan } from '../targets/warehouse/warehouse-plan.ts';
import { type AlertPlan, alertPlan } from './alert-plan.ts';
import { retainedSetting } from './retained-setting.ts';
import type { WebhookPlan, WebhookPlans } from './webhook-plan.ts';

/** A batch is complete at so many records or bytes, or at the age that the installation sets. */
const batchRecords = 1000;
const batchBytes = 5 * 1024 * 1024;

interface AnyReadyPlan {
  state: 'ready';
  setting: TargetSetting;
  retryPolicy: RetryPolicyRecord;
}

export interface ReadyHttpPlan extends AnyReadyPlan {
  type: 'http';
  /** Null: the payload is sent as it was received. */
  transform: TransformRecord | null;
  http: HttpPlan;
  expectedResponse: RouteRecord['expectedResponse'];
}

export interface ReadyAlertPlan extends AnyReadyPlan, AlertPlan {
  type: 'alert';
}

export interface ReadyWarehousePlan extends AnyReadyPlan {
  type: 'warehouse';
  /** Null: events are written as they were received. */
  transform: TransformRecord | null;
  warehouse: WarehousePlan | RefusedWarehouse;
}

export interface ReadyWebhookPlan extends WebhookPlan {
  state: 'ready';
  type: 'webhook';
}

export type ReadyPlan = ReadyHttpPlan | ReadyAlertPlan | ReadyWarehousePlan | ReadyWebhookPlan;

/** How a target's messages are to be treated by today's records. */
export type DeliveryPlan =
  | ReadyPlan
  /** Route or destination is disabled: messages wait. */
  | { state: 'paused'; setting: TargetSetting }
  /** `setting` is null when route or destination are gone. */
  | { state: 'impossible'; reason: DeadLetterReason; setting: TargetSetting }
  | { state: 'impossible'; reason: DeadLetterReason; setting: null; failover: DeletedTargetFailover };

export interface PlanSources extends WarehouseSources {
  registry: RegistryReader;
  /** How long the oldest record of a batch waits for others. */
  batchAgeMs: number;
  /** Egress rules of the installation; those of the organization are added. */
  allowed: InstallationEgress;
  /** Null: no SMTP server is configured. */
  mailer: AlertMailer | null;
  /** Makes the links of thin deliveries. Null: the worker has no public URL. */
  payloadLinks: PayloadLinks | null;
  clock: Clock;
  userAgent: string;
  attemptDetail: AttemptDetailMode;
}

export interface DeliveryPlanSources extends PlanSources {
  webhookPlans: WebhookPlans;
}

/** The plan of a target, kept until its route, destination, transform or organization changes. Throws UNAVAILABLE without Redis. */
export async function deliveryPlan(sources: DeliveryPlanSources, { org, routeId, destinationId }: Target): Promise<DeliveryPlan> {
  const sender = organizationOfWebhooks(org);
  if (sender !== null) return await webhookDeliveryPlan(sources, sender, routeId, destinationId);
  const behind = organizationBehind(org);
  if (behind !== null) return await alertDeliveryPlan(sources, behind, destinationId);
  return await sources.registry.derive(`delivery:${org}/${routeId}/${destinationId}`, async () => {
    const route = await sources.registry.getOf(org, 'route', routeId);
    const dependsOn = [`route:${routeId}`, `destination:${destinationId}`, `organization:${org}`];
    if (route === null) return { value: routeDeleted, dependsOn };
    if (route.transformId !== undefined) dependsOn.push(`transform:${route.transformId}`);
    for (const { id } of route.failover.destinations) dependsOn.push(`destination:${id}`);
    dependsOn.push(ownSourcesKey(org), `source:${route.sourceId}`);
    const placed = {
      route,
      failover: await failoverAfter(sources.registry, route, destinationId),
      hasOwnEvents: (await hasOwnSource(sources.registry, org)) && (await makesOwnEvents(sources.registry, route.sourceId)),
    };
    return { value: await makePlan(sources, org, placed, destinationId), dependsOn };
  });
}

interface PlacedRoute {
  route: RouteRecord;
  /** Where messages of the target may go that it does not deliver, in order. */
  failover: RouteRecord['failover']['destinations'];
  /** Posthorn's own events are made of what happens at its targets. */
  hasOwnEvents: boolean;
}

/** The destinations after this one in the route's list, which may lack it. */
function laterDestinations({ failover: { destinations } }: RouteRecord, destinationId: string): PlacedRoute['failover'] {
  return destinations.slice(destinations.findIndex(({ id }) => id === destinationId) + 1);
}

/** Returns the failover destinations after this one that serve and have no order. */
async function failoverAfter(registry: RegistryReader, route: RouteRecord, destinationId: string): Promise<PlacedRoute['failover']> {
  const later = laterDestinations(route, destinationId);
  const records = await Promise.all(later.map(({ id }) => registry.getOf(route.org, 'destination', id)));
  // Messages that move there would leave their order.
  return later.filter((_, k) => records[k]?.enabled === true && records[k]?.ordered !== true);
}

/** The plan of a target for a webhook endpoint of an application. */
async function webhookDeliveryPlan(
  { webhookPlans }: DeliveryPlanSources,
  org: string,
  applicationId: string,
  endpointId: string,
): Promise<DeliveryPlan> {
  const plan = await webhookPlans.of(org, applicationId, endpointId);
  if (plan === null) return endpointDeleted;
  return plan.setting.paused ? { state: 'paused', setting: plan.setting } : { state: 'ready', type: 'webhook', ...plan };
}

const endpointDeleted: DeliveryPlan = { state: 'impossible', reason: 'destination_not_found', setting: null, failover: null };

/** The plan of a target for a notification channel, or for the addresses of a route. */
async function alertDeliveryPlan(sources: PlanSources, org: string, destinationId: string): Promise<DeliveryPlan> {
  const { registry, allowed } = sources;
  return await registry.derive(`alerts:${org}/${destinationId}`, async () => {
    const organization = await registry.get('organization', org);
    const egress = egressRules(allowed, organization);
    const plan = await alertPlan(sources, org, destinationId, { ...sources, egress, account: accountOf(org) });
    const record = routeOfMailTarget(destinationId);
    return {
      value: alertPlanOf(plan, organization),
      dependsOn: [`organization:${org}`, record === null ? `notificationChannel:${destinationId}` : `route:${record}`],
    };
  });
}

function alertPlanOf(plan: Awaited<ReturnType<typeof alertPlan>>, organization: OrganizationRecord | null): DeliveryPlan {
  if (plan === null) return endpointDeleted;
  return organization?.retained === undefined
    ? { state: 'ready', type: 'alert', ...plan }
    : { state: 'paused', setting: retainedSetting(plan.setting) };
}

const routeDeleted: DeliveryPlan = { state: 'impossible', reason: 'route_deleted', setting: null, failover: null };

async function makePlan(sources: PlanSources, org: string, placed: PlacedRoute, destinationId: string): Promise<DeliveryPlan> {
  const { route } = placed;
  const { registry, allowed, batchAgeMs } = sources;
  const [destination, organization, transform] = await Promise.all([
    registry.getOf(org, 'destination', destinationId),
    registry.get('organization', org),
    route.transformId === undefined ? null : registry.getOf(org, 'transform', route.transformId),
  ]);
  if (destination === null) return withoutDestination(placed, destinationId);
  const setting = { ...targetSetting(placed, destination), batch: batchSetting(destination, batchAgeMs) };
  if (route.transformId !== undefined && transform === null) return awaitingTransform(setting);
  if (organization?.retained !== undefined) return { state: 'paused', setting: retainedSetting(setting) };
  if (setting.paused) return { state: 'paused', setting };
  const { retryPolicy } = destination;
  const egress = egressRules(allowed, organization);
  if (destination.type !== 'http') {
    const warehouse = await warehousePlan(destination, { ...sources, egress });
    if (warehouse === null) return { state: 'impossible', reason: 'secret_decryption_failed', setting };
    return { state: 'ready', type: 'warehouse', setting, retryPolicy, transform, warehouse };
  }
  const http = httpPlan(destination, { ...sources, egress, route: route.slug });
  if (http === null) return { state: 'impossible', reason: 'secret_decryption_failed', setting };
  return { state: 'ready', type: 'http', setting, retryPolicy, transform, expectedResponse: route.expectedResponse, http };
}

function batchSetting(destination: DestinationRecord, ageMs: number): TargetSetting['batch'] {
  if (destination.type === 'http') return null;
  return { layout: layoutText(destination.warehouse), records: batchRecords, bytes: batchBytes, ageMs };
}

/**
 * A destination that the route still names will have a record again, or soon its first one: messages wait for it, but those that failed over to it move on
 * like those of one that is gone.
 */
function withoutDestination(placed: PlacedRoute, id: string): DeliveryPlan {
  const { route, failover } = placed;
  const isNamed = [...route.destinations, ...route.failover.destinations].some((each) => each.id === id);
  if (!isNamed) return { state: 'impossible', reason: 'destination_not_found', setting: null, failover };
  const setting = targetSetting(placed, { id, enabled: false, generation: 0, throttle: unlimited });
  return { state: 'paused', setting: { ...setting, pausedFor: 'destination_missing', inOrder: null } };
}

/** A transform that the route still names will come back, or the route will name another one: nothing goes out without it. */
function awaitingTransform(setting: TargetSetting): DeliveryPlan {
  const pausedFor = setting.pausedFor ?? 'transform_missing';
  return { state: 'paused', setting: { ...setting, revision: `${setting.revision}.awaited`, paused: true, pausedFor, movesOn: 'nobody' } };
}

const unlimited = { mode: 'off', rateLimit: null, rateUnit: null, maxConcurrency: null, queueLimit: null } as const;

/**
 * Ordered messages do not move: without failover they wait for their destination. A failover destination fails over to those after it; only the first destination does so before its retries are used up. Messages leave a destination
 * that is not the first one and does not serve, or that the route no longer names.
 */
function targetSetting(
  { route, failover, hasOwnEvents }: PlacedRoute,
  destination: Pick<DestinationRecord, 'id' | 'enabled' | 'suspended' | 'generation' | 'throttle' | 'ordered'>,
): TargetSetting {
  const inOrder = destination.ordered === true;
  const isLater = route.failover.destinations.some(({ id }) => id === destination.id);
  const isFirst = route.destinations.some(({ id }) => id === destination.id);
  const movesOn = isFirst || !route.enabled || inOrder ? 'nobody' : !destination.enabled ? 'all' : isLater ? 'nobody' : 'guests';
  const pausedFor = pauseReason(route, destination);
  const awaited = laterDestinations(route, destination.id).flatMap(({ id }) => (failover.some((each) => each.id === id) ? [] : [id]));
  return {
    // The list of the route changes with the destinations in it, not only with the route.
    revision: [
      `${destination.generation}.${route.generation}`,
      ...(pausedFor === null ? [] : [pausedFor]),
      ...(movesOn === 'nobody' ? [] : [movesOn]),
      ...(failover.length === 0 || inOrder ? [] : [failover.map(({ id }) => id).join('+')]),
      ...(hasOwnEvents ? ['own'] : []),
      // Workers of the release before support no order: what they put in force is another setting.
      ...(inOrder ? ['ordered'] : []),
    ].join('.'),
    paused: !route.enabled || !destination.enabled,
    pausedFor,
    movesOn,
    throttle: destination.throttle,
    sharedLimiter: null,
    priority: route.priority,
    circuit: route.circuit,
    failover: {
      destinations: inOrder ? [] : failover,
      awaited: inOrder ? [] : awaited,
      afterAttempts: isLater ? null : route.failover.afterAttempts,
    },
    batch: null,
    inOrder,
    hasAlerts: route.notifications !== undefined,
    hasOwnEvents,
  };
}

function pauseReason(route: RouteRecord, { enabled, suspended }: Pick<DestinationRecord, 'enabled' | 'suspended'>): PauseReason | null {
  if (!route.enabled) return 'route_disabled';
  if (enabled) return null;
  return suspended === true ? 'destination_suspended' : 'destination_disabled';
}
