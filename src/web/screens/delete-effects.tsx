import type { ReactElement } from 'react';
import { EffectLoading } from '../app/delete-act.tsx';
import { useRead } from '../app/use-api.ts';
import { count, quantity } from '../ui/format.ts';
import { Failure } from '../ui/notices.tsx';
import { isUnderWay, queuedWords, type Replay, unsentWords } from './replay-parts.tsx';
import { useRoutesTo } from './target-data.ts';

const maxNamed = 5;

/** What the deletion of a destination does to routes, and to what waits for it. */
export function DestinationEffect({ id }: { id: string }): ReactElement {
  const { routes, isLoading, error, isPart } = useRoutesTo(id);
  const series = useRead('GET /analytics/series', { query: { destinationId: id } });
  if (error !== null) return <Failure message={error.message} requestId={error.requestId} />;
  if (isLoading) return <EffectLoading what="the routes to it" />;
  if (series.isPending) return <EffectLoading what="what waits for it" />;
  const alone = routes.filter(({ destinationIds }) => destinationIds.length === 1 && destinationIds[0] === id);
  return (
    <>
      <p>
        {routes.length === 0
          ? `No route leads to it${isPart ? ', of those that were read' : ''}.`
          : `${isPart ? 'At least ' : ''}${quantity(routes.length, 'route leads', 'routes lead')} to it and ${routes.length === 1 ? 'loses' : 'lose'} it: ${listed(routes)}.`}
        {alone.length === 0 ? '' : ` No destination is left for the events of ${listed(alone)}.`}
      </p>
      <p>
        {series.error === null ? waitingWords(series.data.now?.backlog) : unreadBacklog} What waits for it goes to the failover destination
        of its route, and to the dead letters where there is none. What was delivered stays in the lists.
      </p>
    </>
  );
}

/** Effects of the deletion of a subscription. */
export function SubscriptionEffect(): ReactElement {
  return <p>New events of this type make no message for the endpoint. Messages that are queued are still sent.</p>;
}

/** Effects of the deletion of an event type. */
export function EventTypeEffect({ subscriptionCount }: { subscriptionCount: number }): ReactElement {
  return <p>{subscriptionsGo(subscriptionCount)} Nobody can send events of this type or subscribe to it any more.</p>;
}

/** Effects of the deletion of a webhook endpoint on its subscriptions and on waiting messages. */
export function EndpointEffect({ id, subscriptionCount }: { id: string; subscriptionCount: number }): ReactElement {
  const series = useRead('GET /webhooks/analytics/series', { query: { endpointId: id } });
  if (series.isPending) return <EffectLoading what="what waits for it" />;
  return (
    <p>
      {subscriptionsGo(subscriptionCount)} {series.error === null ? waitingWords(series.data.data.now?.backlog) : unreadBacklog} What waits
      for it becomes a dead letter, and its secret is gone.
    </p>
  );
}

/** Effects of the deletion of a replay. */
export function ReplayEffect({ replay }: { replay: Replay }): ReactElement {
  const { phase } = replay;
  const isOpen = isUnderWay(replay) || phase === 'Suspended';
  return (
    <p>
      {isOpen ? `It is cancelled. ${unsentWords(replay)} ` : ''}
      {isOpen ? `${queuedWords(replay)} ` : ''}
      Its report goes. An equal replay with this name is not run again for 90 days.
    </p>
  );
}

const unreadBacklog = 'The number of messages that wait for it could not be read.';

function subscriptionsGo(count: number): string {
  return count === 0 ? 'It has no subscription.' : `Its ${quantity(count, 'subscription is', 'subscriptions are')} deleted with it.`;
}

function waitingWords(backlog: number | null | undefined): string {
  if (backlog === undefined || backlog === null) return '';
  return backlog === 0 ? 'Nothing waits for it.' : `${quantity(backlog, 'message waits', 'messages wait')} for it.`;
}

function listed(routes: readonly { name: string }[]): string {
  const names = routes.slice(0, maxNamed).map(({ name }) => name);
  return `${names.join(', ')}${routes.length > maxNamed ? ` and ${count(routes.length - maxNamed)} more` : ''}`;
}
