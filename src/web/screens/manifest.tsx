import { Link, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { AsCode } from '../app/as-code.tsx';
import { ManifestView } from '../app/manifest/manifest-view.tsx';
import { Page } from '../app/page.tsx';
import { useOrganization, useRead } from '../app/use-api.ts';
import { shortId } from '../ui/format.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';

/** What does Kubernetes have of this resource, and who owns which of its fields? */
export function ManifestPage(): ReactElement {
  const org = useOrganization();
  const { id } = useParams({ from: '/o/$org/manifests/$id' });
  const input = { path: { id } };
  const { data, error, refetch } = useRead('GET /manifests/{id}', input);
  return (
    <Page
      title={data?.manifest.metadata.name ?? shortId(id)}
      crumbs={
        <Link to="/o/$org/id/$id" params={{ org, id }}>
          {shortId(id)}
        </Link>
      }
      sub={data?.manifest.kind}
      actions={<AsCode name="GET /manifests/{id}" input={input} />}
    >
      {data !== undefined ? (
        <ManifestView data={data} />
      ) : error === null ? (
        <Loading what="the manifest" />
      ) : error.status === 404 ? (
        <Empty title="No manifest">
          <p>{error.message}</p>
        </Empty>
      ) : (
        <Failure message={error.message} requestId={error.requestId} retry={() => void refetch()} />
      )}
    </Page>
  );
}
