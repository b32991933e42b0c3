import { z } from 'zod';
import { webhookOrganization } from '../../../../core/webhook.ts';
import type { WebhookEndpoint } from '../../../../data/webhooks/webhooks.ts';
import type { Call } from '../../../http/operation.ts';
import { isoTime, isoTimeOrNull, organizationId, recordTimes, shownDescription, timestamp } from '../../../records/record-fields.ts';
import { endpointFields } from './endpoint-fields.ts';
import { shownEndpointHeaders } from './endpoint-headers.ts';

export const circuitState = z.enum(['closed', 'open', 'half_open']);

export const endpointRecord = z
  .object({
    id: z.string().describe('Made by Posthorn; stays the same.'),
    organizationId,
    applicationId: z.string().describe('Id of the application.'),
    ...endpointFields,
    description: shownDescription,
    circuitState: circuitState.describe('closed: messages flow; open: they wait; half_open: probes are under way.'),
    circuitFailureCount: z.int().min(0).describe('Consecutive failed attempts.'),
    secretPrefix: z.string().describe('Leading part of the signing secret.'),
    hasSecret: z.boolean().describe('Whether there is a signing secret.'),
    secretVersion: z.int().min(1).describe('Grows with each rotation.'),
    isVerified: z.boolean().describe('Whether it has ever answered with success.'),
    totalMessages: z.int().min(0).describe('Messages that have ended, delivered or not.'),
    totalSuccesses: z.int().min(0).describe('Messages that were delivered.'),
    totalFailures: z.int().min(0).describe('Messages that were given up.'),
    avgResponseTimeMs: z.number().nullable().describe('Of all attempts; null before the first.'),
    lastSuccessAt: timestamp.nullable().describe('When an attempt last succeeded; null before the first.'),
    lastFailureAt: timestamp.nullable().describe('When an attempt last failed; null before the first.'),
    subscriptionCount: z.int().min(0).describe('Subscriptions that it has.'),
    ...recordTimes,
  })
  .meta({ id: 'WebhookEndpoint' });

export type EndpointRecord = z.input<typeof endpointRecord>;
type Asker = Pick<Call, 'services' | 'caller'>;

/** The records of endpoints, in their order. */
export async function endpointRecords(endpoints: readonly WebhookEndpoint[], { services, caller }: Asker): Promise<EndpointRecord[]> {
  const org = caller.organization.id;
  const counted = webhookOrganization(org);
  const ids = endpoints.map(({ id }) => id);
  const targets = endpoints.map(({ id, applicationId }) => ({ routeId: applicationId, destinationId: id }));
  const [subscriptions, totals, circuits] = await Promise.all([
    services.webhooks.subscriptionCountsOfEndpoints(org, ids),
    Promise.all(ids.map((id) => services.messages.destinationCounters(counted, id))),
    services.circuits.ofTargets(counted, targets),
  ]);
  const circuitOf = new Map(circuits.map((circuit) => [circuit.destinationId, circuit]));
  return endpoints.map((endpoint, i) => {
    const { deliveries = 0, successes = 0, averageLatencyMs = null } = totals[i] ?? {};
    const circuit = circuitOf.get(endpoint.id);
    return {
      id: endpoint.id,
      organizationId: org,
      applicationId: endpoint.applicationId,
      url: endpoint.url,
      description: endpoint.description,
      headers: shownEndpointHeaders({ services }, endpoint),
      timeoutSeconds: endpoint.timeoutSeconds,
      rateLimitPerSecond: endpoint.rateLimitPerSecond,
      rateLimitStrict: endpoint.rateLimitStrict,
      circuitFailureThreshold: endpoint.circuit.failureThreshold,
      circuitSuccessThreshold: endpoint.circuit.successThreshold,
      circuitCooldownSeconds: endpoint.circuit.cooldownSeconds,
      circuitState: circuit?.state ?? 'closed',
      circuitFailureCount: circuit?.consecutiveFailures ?? 0,
      secretPrefix: `${endpoint.secret.prefix}…`,
      hasSecret: true,
      secretVersion: endpoint.secret.version,
      isDisabled: endpoint.isDisabled,
      disabledReason: endpoint.disabledReason,
      isVerified: successes > 0,
      totalMessages: deliveries,
      totalSuccesses: successes,
      totalFailures: deliveries - successes,
      avgResponseTimeMs: averageLatencyMs,
      lastSuccessAt: isoTimeOrNull(circuit?.lastSuccessAtMs ?? null),
      lastFailureAt: isoTimeOrNull(circuit?.lastFailureAtMs ?? null),
      subscriptionCount: subscriptions.get(endpoint.id) ?? 0,
      createdAt: isoTime(endpoint.createdAtMs),
      updatedAt: isoTime(endpoint.updatedAtMs),
    };
  });
}

export async function toEndpoint(endpoint: WebhookEndpoint, call: Asker): Promise<EndpointRecord> {
  const [record] = await endpointRecords([endpoint], call);
  if (record === undefined) throw new Error('a record was lost');
  return record;
}
