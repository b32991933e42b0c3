import { z } from 'zod';
import { worstState } from '../../../core/circuit.ts';
import type { CircuitView } from '../../../data/queue/circuits.ts';
import { kinds, type PosthornObject } from '../../../resources/kinds.ts';
import { type Call, type Operation, operation } from '../../http/operation.ts';
import { byName, findToRead, idOf } from '../../records/lookup.ts';
import { isoTimeOrNull, timestamp } from '../../records/record-fields.ts';
import { changeRecord } from '../../records/resource-writes.ts';
import { circuitSettings, routeBody } from './route-body.ts';
import { routeToSpec } from './route-spec.ts';

const circuitState = z.enum(['closed', 'open', 'half_open']);
const settings = kinds.Route.spec.shape.circuit.unwrap();
const defaults = settings.parse({});

const readings = {
  circuitState: circuitState.describe('closed: deliveries flow; open: they wait or fail over; half_open: probes are under way.'),
  failureCount: z.int().min(0).describe('Consecutive failed attempts.'),
  lastFailureAt: timestamp.nullable().describe('When an attempt last failed; null before the first.'),
  lastSuccessAt: timestamp.nullable().describe('When an attempt last succeeded; null before the first.'),
  openedAt: timestamp.nullable().describe('When the outage began; null while the circuit is closed.'),
  probeSuccessCount: z.int().min(0).describe('Successful probes of the present outage.'),
};

const circuitStatus = z
  .object({
    ...readings,
    failureThreshold: z.int().describe('Consecutive failed attempts that open it.'),
    cooldownSeconds: z.int().describe('Seconds that an open circuit waits before it is probed.'),
    probeSuccessThreshold: z.int().describe('Successful probes that close it.'),
    circuitOpenedAt: timestamp.nullable().describe('The same as openedAt.'),
    consecutiveFailures: z.int().min(0).describe('The same as failureCount.'),
    probeAttempts: z.int().min(0).describe('The same as probeSuccessCount: a probe that fails ends the count.'),
    timeUntilProbeSeconds: z.int().min(0).nullable().describe('Seconds until the circuit is probed; null unless it is open.'),
    destinations: z
      .array(z.object({ id: z.string().describe('Id of the destination.'), ...readings }))
      .describe('Each destination of the route, failover included.'),
  })
  .meta({ id: 'CircuitStatus', description: 'The worst circuit of the route, and each of its destinations.' });

const configBody = z.strictObject({
  circuitCooldownSeconds: routeBody.shape.circuitCooldownSeconds,
  circuitFailureThreshold: routeBody.shape.circuitFailureThreshold,
  circuitProbeSuccessThreshold: routeBody.shape.circuitProbeSuccessThreshold,
});

export const routeCircuitOperations: readonly Operation[] = [
  operation({
    method: 'GET',
    path: '/routes/{id}/circuit-status',
    operationId: 'getRouteCircuitStatus',
    summary: 'Read the circuit of a route',
    scope: 'read',
    answer: { status: 200, description: 'The circuit.', schema: circuitStatus },
    errors: ['RESOURCE_NOT_FOUND'],
    handle: async (call) => circuitStatusOf(await findToRead(call, 'Route', call.params['id'] ?? ''), call),
  }),
  operation({
    method: 'POST',
    path: '/routes/{id}/reset-circuit',
    operationId: 'resetRouteCircuit',
    summary: 'Close the circuit of a route',
    scope: 'write',
    answer: {
      status: 200,
      description: 'The circuits of all destinations of the route are closed.',
      schema: z.object({
        message: z.string().describe('What was done, in words.'),
        circuitState: circuitState.describe('closed, unless it has opened again.'),
      }),
    },
    errors: ['RESOURCE_NOT_FOUND'],
    handle: async (call) => {
      const route = await findToRead(call, 'Route', call.params['id'] ?? '');
      await call.services.circuits.reset(call.caller.organization.id, idOf(route), await destinationIds(route, call));
      return { message: 'The circuit is closed.', circuitState: 'closed' };
    },
  }),
  operation({
    method: 'PATCH',
    path: '/routes/{id}/circuit-config',
    operationId: 'configureRouteCircuit',
    summary: 'Change the circuit breaker of a route',
    scope: 'write',
    body: configBody,
    requestExample: { circuitFailureThreshold: 10 },
    answer: {
      status: 200,
      description: 'The active values.',
      schema: z.object({
        ...circuitSettings,
        message: z.string().describe('What was done, in words.'),
      }),
    },
    errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED'],
    isVersioned: true,
    handle: async (call) => {
      const changed = await changeRecord(
        { kind: 'Route', immutable: {}, toSpec: ({ call: own, body, current }) => routeToSpec(own, body, current) },
        call,
        call.body,
      );
      const { cooldownSeconds, failureThreshold, probeSuccessThreshold } = changed.spec.circuit ?? defaults;
      return {
        circuitCooldownSeconds: cooldownSeconds,
        circuitFailureThreshold: failureThreshold,
        circuitProbeSuccessThreshold: probeSuccessThreshold,
        message: 'The circuit configuration is active.',
      };
    },
  }),
];

/** The current circuits of a route. */
export async function circuitStatusOf(route: PosthornObject<'Route'>, call: Call): Promise<z.input<typeof circuitStatus>> {
  const nowMs = call.services.clock.now();
  const ids = await destinationIds(route, call);
  const circuits = await call.services.circuits.ofRoute(call.caller.organization.id, idOf(route), ids);
  const { failureThreshold, cooldownSeconds, probeSuccessThreshold } = route.spec.circuit ?? defaults;
  const state = worstState(circuits.map((circuit) => circuit.state));
  const worst = circuits
    .filter((circuit) => circuit.state === state)
    .reduce<CircuitView | undefined>(
      (most, each) => ((most?.consecutiveFailures ?? -1) < each.consecutiveFailures ? each : most),
      undefined,
    );
  const readings = readingsOf(worst);
  return {
    ...readings,
    circuitOpenedAt: readings.openedAt,
    consecutiveFailures: readings.failureCount,
    probeAttempts: readings.probeSuccessCount,
    timeUntilProbeSeconds:
      worst?.state === 'open' && worst.sinceMs !== null ? Math.max(0, Math.ceil((worst.sinceMs - nowMs) / 1000) + cooldownSeconds) : null,
    lastFailureAt: latest(circuits.map(({ lastFailureAtMs }) => lastFailureAtMs)),
    lastSuccessAt: latest(circuits.map(({ lastSuccessAtMs }) => lastSuccessAtMs)),
    failureThreshold,
    cooldownSeconds,
    probeSuccessThreshold,
    destinations: ids.map((id) => ({ id, ...readingsOf(circuits.find(({ destinationId }) => destinationId === id)) })),
  };
}

/** A target that has had no message yet has no circuit in Redis: it is closed. */
function readingsOf(circuit: CircuitView | undefined) {
  return {
    circuitState: circuit?.state ?? 'closed',
    failureCount: circuit?.consecutiveFailures ?? 0,
    lastFailureAt: isoTimeOrNull(circuit?.lastFailureAtMs ?? null),
    lastSuccessAt: isoTimeOrNull(circuit?.lastSuccessAtMs ?? null),
    openedAt: isoTimeOrNull(circuit?.openedAtMs ?? null),
    probeSuccessCount: circuit?.probeSuccesses ?? 0,
  };
}

function latest(times: readonly (number | null)[]): string | null {
  const known = times.filter((time) => time !== null);
  return isoTimeOrNull(known.length === 0 ? null : Math.max(...known));
}

async function destinationIds({ spec }: PosthornObject<'Route'>, call: Call): Promise<string[]> {
  const refs = [...spec.destinationRefs, ...(spec.failover?.destinationRefs ?? [])];
  const found = await Promise.all(refs.map(({ name }) => byName(call, 'Destination', name)));
  return found.filter((object) => object !== null).map(idOf);
}
