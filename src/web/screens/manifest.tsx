import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import type { ApiError } from '../api/client.ts';
import { AsCode } from '../app/as-code.tsx';
import { type Exact, readExact } from '../app/manifest/exact.ts';
import { ManifestView } from '../app/manifest/manifest-view.tsx';
import { Page } from '../app/page.tsx';
import { againMs, useOrganization } from '../app/use-api.ts';
import { shortId } from '../ui/format.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';

const everyMs = 10_000;

/** The name that people see. */
function nameIn(spec: unknown): string | null {
  const { name }: { name?: unknown } = Object(spec);
  return typeof name === 'string' ? name : null;
}

/** What does Kubernetes have of this resource, and who owns which of its fields? */
export function ManifestPage(): ReactElement {
  const org = useOrganization();
  const { id } = useParams({ from: '/o/$org/manifests/$id' });
  const input = { path: { id } };
  const { data, error, refetch } = useQuery<Exact<'GET /manifests/{id}'>, ApiError>({
    queryKey: [org, 'GET /manifests/{id}', input, 'exact'],
    queryFn: ({ signal }) => readExact('GET /manifests/{id}', input, { organization: org, signal }),
    refetchInterval: ({ state }) => (state.status === 'error' ? againMs : everyMs),
  });
  return (
    <Page
      title={data?.answer.manifest.metadata.name ?? shortId(id)}
      crumbs={
        <Link to="/o/$org/id/$id" params={{ org, id }}>
          {nameIn(data?.answer.manifest.spec) ?? shortId(id)}
        </Link>
      }
      sub={data?.answer.manifest.kind}
      actions={<AsCode name="GET /manifests/{id}" input={input} />}
    >
      {data !== undefined ? (
        <ManifestView exact={data} />
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
