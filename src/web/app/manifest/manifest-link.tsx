import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { useOrganization } from '../use-api.ts';

/** Opens a resource as YAML, with the owners of its fields. */
export function ManifestLink({ id, isSmall = false }: { id: string; isSmall?: boolean }): ReactElement {
  const org = useOrganization();
  return (
    <Link className={`btn${isSmall ? ' is-sm' : ''}`} to="/o/$org/manifests/$id" params={{ org, id }}>
      YAML
    </Link>
  );
}
