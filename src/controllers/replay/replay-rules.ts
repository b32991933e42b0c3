import { compileReplay, replayIdentity } from '../../compile/replay.ts';
import type { Clock } from '../../core/clock.ts';
import type { OneOrSeveral } from '../../core/replay-record.ts';
import type { KnownWebhooks } from '../../data/webhooks/known-webhooks.ts';
import type { PosthornKind, PosthornObject } from '../../resources/kinds.ts';
import type { ResourceCache } from '../../store/cache.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import { idOf, referenced } from '../held-ids.ts';
import { complaintsAbout, type UnreadyReference, unreadyReferences } from '../reference-state.ts';
import type { ResourceRules } from '../resource-reconciler.ts';
import { namesIn, unknownAmong } from './replay-names.ts';

type Named = { name: string } | { name: string }[];

/** Interval until a replay with an unknown name in its filter is reconciled again. A new event type triggers it at once; applications and endpoints that the API makes have no objects. */
const retryMs = 10_000;

/**
 * A replay keeps the ids that its references had when its record was first published. Until then each reference has to exist. A route or destination that
 * is deleted or recreated afterwards does not stop the replay, which can still be suspended and cancelled. Event types, applications and endpoints have to exist,
 * or to have existed as long as there is history of them, until then.
 */
export function replayRules(
  caches: ControllerCaches,
  { webhooks, clock }: { webhooks: KnownWebhooks; clock: Clock },
): ResourceRules<'Replay'> {
  return {
    kind: 'Replay',
    // By what its filter names it only compares.
    worksWithout: ({ spec }, unready) => unready.every((each) => each.state === 'earlier' || !isTarget(spec, each)),
    evaluate: async (object, organization, published) => {
      const { filter, destinationRef } = object.spec;
      const { namespace } = organization;
      const sources = filter.sourceRef ?? filter.sourceRefs;
      const routes = filter.routeRef ?? filter.routeRefs;
      const destinations = filter.destinationRef ?? filter.destinationRefs;
      const names = namesIn(filter);
      const hasNames = Object.values(names).some((each) => each.length > 0);
      const hasReferences = [sources, routes, destinations, destinationRef].some((each) => each !== undefined);
      const earlier = hasReferences || hasNames ? await published() : null;
      const kept = earlier?.identity === replayIdentity(object, organization) ? earlier : null;
      const id = <K extends PosthornKind>(cache: ResourceCache<K>, reference: { name: string } | undefined): string | undefined => {
        const target = reference && referenced(caches, cache, { namespace, name: reference.name });
        return target && idOf(cache.kind, target);
      };
      const oneOrAll = <K extends PosthornKind>(cache: ResourceCache<K>, named: Named | undefined): OneOrSeveral | undefined => {
        if (!Array.isArray(named)) return id(cache, named);
        const found = named.flatMap((each) => id(cache, each) ?? []);
        return found.length === named.length ? found : undefined;
      };
      const ids = {
        filterSourceId: kept?.filter.sourceId ?? oneOrAll(caches.Source, sources),
        filterRouteId: kept?.filter.routeId ?? oneOrAll(caches.Route, routes),
        filterDestinationId: kept?.filter.destinationId ?? oneOrAll(caches.Destination, destinations),
        destinationId: kept?.destinationId ?? id(caches.Destination, destinationRef),
      };
      const isMissing =
        (sources !== undefined && ids.filterSourceId === undefined) ||
        (routes !== undefined && ids.filterRouteId === undefined) ||
        (destinations !== undefined && ids.filterDestinationId === undefined) ||
        (destinationRef !== undefined && ids.destinationId === undefined);
      if (isMissing) {
        const [unresolved] = complaintsAbout(unreadyReferences(caches, object).filter(({ state }) => state === 'missing'));
        if (unresolved !== undefined) return { unresolved };
      }
      const unresolved = hasNames && kept === null ? await unknownAmong(names, { caches, webhooks, organization }) : null;
      if (unresolved !== null) return { unresolved, judgedAgainAtMs: clock.now() + retryMs };
      return compileReplay(object, { organization, ...ids });
    },
  };
}

/** Whether it is where everything is sent to. */
function isTarget({ destinationRef }: PosthornObject<'Replay'>['spec'], { kind, name }: UnreadyReference): boolean {
  return kind === 'Destination' && name === destinationRef?.name;
}
