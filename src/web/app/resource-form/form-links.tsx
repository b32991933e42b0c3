import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { Icon } from '../../ui/icon.tsx';
import { useOrganization } from '../use-api.ts';

/** Opens the form of a new resource. `family`: as the address names it. */
export function NewLink({ family, noun }: { family: string; noun: string }): ReactElement {
  const org = useOrganization();
  return (
    <Link className="btn is-primary" to="/o/$org/$family/new" params={{ org, family }}>
      <Icon name="plus" />
      New {noun}
    </Link>
  );
}

/** Opens the form of a new endpoint of an application. */
export function NewEndpointLink({ applicationId }: { applicationId: string }): ReactElement {
  const org = useOrganization();
  return (
    <Link className="btn is-sm" to="/o/$org/$family/new" params={{ org, family: 'endpoints' }} search={{ applicationId }}>
      <Icon name="plus" />
      New endpoint
    </Link>
  );
}

/** Opens the form of a new subscription of an endpoint. */
export function SubscribeLink({ endpointId }: { endpointId: string }): ReactElement {
  const org = useOrganization();
  return (
    <Link className="btn is-sm" to="/o/$org/$family/new" params={{ org, family: 'subscriptions' }} search={{ endpointId }}>
      <Icon name="plus" />
      Subscribe
    </Link>
  );
}

/** Opens the form that changes a resource. */
export function EditLink({ family, id }: { family: string; id: string }): ReactElement {
  const org = useOrganization();
  return (
    <Link className="btn" to="/o/$org/$family/$id/edit" params={{ org, family, id }}>
      Edit
    </Link>
  );
}
