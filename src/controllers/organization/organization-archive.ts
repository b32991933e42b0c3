import type { Refusal } from '../../compile/compiled.ts';
import { destinationRefusal } from '../../compile/destination.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { idOf, referenced } from '../held-ids.ts';
import { referenceStateOf } from '../reference-state.ts';

export interface ArchiveReference {
  /** Null: there is no archive, or none that can ever be written to. */
  destinationId: string | null;
  unresolved?: Refusal;
}

/** The warehouse that an organization names for its archive. */
export function archiveReference({ spec }: PosthornObject<'Organization'>, caches: ControllerCaches): ArchiveReference {
  if (spec.archive === undefined) return { destinationId: null };
  const { name } = spec.archive.destinationRef;
  const destination = referenced(caches, caches.Destination, { namespace: spec.namespace, name });
  const unresolved = (reason: string, message: string): ArchiveReference => ({
    destinationId: null,
    unresolved: { reason, message: `spec.archive.destinationRef: ${message}` },
  });
  if (destination === undefined) return unresolved('DestinationNotFound', `Destination ${name} does not exist in ${spec.namespace}`);
  if (destination.spec.type === 'http')
    return unresolved('DestinationNotWarehouse', `Destination ${name} has type http; an archive needs a warehouse`);
  const refusal = destinationRefusal(destination.spec);
  if (refusal !== null) return unresolved('DestinationNotAccepted', `Destination ${name}: ${refusal.message}`);
  const destinationId = idOf('Destination', destination);
  const { state, reason } = referenceStateOf(destination);
  // Its first status is on its way.
  if (state === 'ready' || state === 'unseen') return { destinationId };
  return { ...unresolved('DestinationNotReady', `Destination ${name} is not ready (${reason})`), destinationId };
}
