import { PosthornError } from '../../../core/errors.ts';
import type { PosthornObject } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { routesWith } from '../../records/in-use.ts';

type Destination = PosthornObject<'Destination'>;

/** `spec.ordered`. VALIDATION_FAILED when it is switched on while a route has failover that concerns the destination: messages would leave their order. */
export function orderedToSpec(call: Call, sent: boolean | undefined, current: Destination | undefined): boolean | undefined {
  const before = current?.spec.ordered;
  // Without a default in the schema false, sent back as it was shown, is no change.
  if (sent === undefined || sent === (before ?? false)) return before;
  if (sent && current !== undefined) refuseFailover(current, call);
  return sent;
}

function refuseFailover(destination: Destination, call: Call): void {
  const route = routesWith(destination, call).find(({ spec }) => (spec.failover?.destinationRefs ?? []).length > 0);
  if (route === undefined) return;
  const why = `the route "${route.metadata.name}" has failover destinations, and messages that move leave their order`;
  throw new PosthornError('VALIDATION_FAILED', `ordered cannot be true: ${why}.`);
}
