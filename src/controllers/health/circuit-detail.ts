import { isPosthornError } from '../../core/errors.ts';
import { webhookOrganization } from '../../core/webhook.ts';
import type { Circuits } from '../../data/queue/circuits.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { idOf, organizationOf } from '../held-ids.ts';
import type { CircuitTarget } from './broken-circuits.ts';
import type { CircuitDetail, HealthKind } from './health-reconciler.ts';

/** What is known of a circuit of an object: between which two it is, and what Redis has of it. Null while Redis does not answer. */
export async function circuitDetail(
  { caches, circuits }: { caches: ControllerCaches; circuits: Pick<Circuits, 'ofTargets'> },
  kind: HealthKind,
  { metadata }: PosthornObject<HealthKind>,
  target: CircuitTarget,
): Promise<CircuitDetail | null> {
  const namespace = metadata.namespace ?? '';
  const organization = organizationOf(caches.Organization, namespace);
  if (organization === undefined) return null;
  const org = idOf('Organization', organization);
  const isWebhook = kind === 'WebhookEndpoint';
  try {
    const [circuit] = await circuits.ofTargets(isWebhook ? webhookOrganization(org) : org, [target]);
    if (circuit === undefined) return null;
    const { routeId, destinationId } = target;
    const nameOf = (cached: { metadata: { name: string } } | undefined, id: string): string => cached?.metadata.name ?? id;
    const between = isWebhook
      ? `to the endpoint ${metadata.name}`
      : `from the route ${nameOf(caches.Route.getById(routeId, namespace), routeId)} to the destination ${nameOf(caches.Destination.getById(destinationId, namespace), destinationId)}`;
    return { between, outageBeganAtMs: circuit.openedAtMs, nextProbeAtMs: circuit.cooldownEndsAtMs, lastFailure: circuit.lastFailure };
  } catch (error) {
    if (isPosthornError(error, 'UNAVAILABLE')) return null;
    throw error;
  }
}
