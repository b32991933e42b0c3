import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { useOrganization } from '../use-api.ts';

/** Opens a resource as YAML, with the owners of its fields. */
export function ManifestLink({ id }: { id: string }): ReactElement {
  const org = useOrganization();
  return (
    <Link className="btn" to="/o/$org/manifests/$id" params={{ org, id }}>
      YAML
    </Link>
  );
}
