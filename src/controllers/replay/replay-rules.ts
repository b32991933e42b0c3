import { compileReplay, replayIdentity } from '../../compile/replay.ts';
import type { PosthornKind, PosthornObject } from '../../resources/kinds.ts';
import type { ResourceCache } from '../../store/cache.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { idOf, referenced } from '../references.ts';
import type { ResourceRules } from '../resource-reconciler.ts';
import { complaintsAbout, type Lacking, lackingReferences } from '../standing.ts';

/**
 * A replay keeps the ids that its references had when its record was first published. Until then each reference has to exist. A route or destination that
 * is deleted or recreated afterwards does not stop the replay, which can still be suspended and cancelled.
 */
export function replayRules(caches: ControllerCaches): ResourceRules<'Replay'> {
  return {
    kind: 'Replay',
    // By what its filter names it only compares.
    worksWithout: ({ spec }, lacking) => lacking.every((each) => each.state === 'earlier' || !isTarget(spec, each)),
    evaluate: async (object, organization, published) => {
      const { filter, destinationRef } = object.spec;
      const { namespace } = organization;
      const hasReferences = [filter.sourceRef, filter.routeRef, filter.destinationRef, destinationRef].some((each) => each !== undefined);
      const earlier = hasReferences ? await published() : null;
      const kept = earlier?.identity === replayIdentity(object, organization) ? earlier : null;
      const id = <K extends PosthornKind>(cache: ResourceCache<K>, reference: { name: string } | undefined): string | undefined => {
        const target = reference && referenced(caches, cache, { namespace, name: reference.name });
        return target && idOf(cache.kind, target);
      };
      const ids = {
        filterSourceId: kept?.filter.sourceId ?? id(caches.Source, filter.sourceRef),
        filterRouteId: kept?.filter.routeId ?? id(caches.Route, filter.routeRef),
        filterDestinationId: kept?.filter.destinationId ?? id(caches.Destination, filter.destinationRef),
        destinationId: kept?.destinationId ?? id(caches.Destination, destinationRef),
      };
      const isMissing =
        (filter.sourceRef !== undefined && ids.filterSourceId === undefined) ||
        (filter.routeRef !== undefined && ids.filterRouteId === undefined) ||
        (filter.destinationRef !== undefined && ids.filterDestinationId === undefined) ||
        (destinationRef !== undefined && ids.destinationId === undefined);
      if (isMissing) {
        const [unresolved] = complaintsAbout(lackingReferences(caches, object).filter(({ state }) => state === 'missing'));
        if (unresolved !== undefined) return { unresolved };
      }
      return compileReplay(object, { organization, ...ids });
    },
  };
}

/** Whether it is where everything is sent to. */
function isTarget({ destinationRef }: PosthornObject<'Replay'>['spec'], { kind, name }: Lacking): boolean {
  return kind === 'Destination' && name === destinationRef?.name;
}
