import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { DeleteAct } from '../app/delete-act.tsx';
import { ManifestLink } from '../app/manifest/manifest-link.tsx';
import { SubscribeLink } from '../app/resource-form/form-links.tsx';
import { ShortList } from '../app/short-list.tsx';
import { type RowOf, useCursorList, useOrganization } from '../app/use-api.ts';
import { State } from '../ui/state.tsx';
import { SubscriptionEffect } from './delete-effects.tsx';

/** What an endpoint is subscribed to. */
export function Subscriptions({ endpointId }: { endpointId: string }): ReactElement {
  const list = useCursorList('GET /webhook-subscriptions', { endpointId });
  return (
    <section aria-label="Subscriptions">
      <header>
        <h3>Subscriptions</h3>
        <SubscribeLink endpointId={endpointId} />
      </header>
      <ShortList what="subscriptions" empty="It subscribes to no event type, so it gets no message." list={list}>
        {(subscription) => <Subscription key={subscription.id} subscription={subscription} />}
      </ShortList>
    </section>
  );
}

function Subscription({ subscription }: { subscription: RowOf<'GET /webhook-subscriptions'> }): ReactElement {
  const org = useOrganization();
  const { id, eventTypeName, isEnabled, filterExpression, labelFilters, lastFilterError, updatedAt } = subscription;
  const name = eventTypeName ?? 'a deleted event type';
  const labels = Object.keys(labelFilters).length === 0 ? null : JSON.stringify(labelFilters);
  const about = lastFilterError ?? [filterExpression, labels].filter((each) => each !== null).join(', ');
  return (
    <>
      <dt>
        <State state={lastFilterError !== null ? 'failed' : isEnabled ? 'ready' : 'disabled'} />
      </dt>
      <dd className="row">
        <Link to="/o/$org/$family/$id/edit" params={{ org, family: 'subscriptions', id }}>
          {name}
        </Link>
        {about === '' ? null : <span className="sub">{about}</span>}
        <ManifestLink id={id} isSmall />
        <DeleteAct
          family="webhook-subscriptions"
          id={id}
          noun="subscription"
          word="Unsubscribe"
          question={`Unsubscribe from ${name}?`}
          isSmall
          updatedAt={updatedAt}
        >
          <SubscriptionEffect />
        </DeleteAct>
      </dd>
    </>
  );
}
