import { useQuery } from '@tanstack/react-query';
import { useParams, useSearch } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { readBytes } from '../api/client.ts';
import { type Exact, readExact } from '../app/manifest/exact.ts';
import type { Body } from '../app/resource-form/body.ts';
import { inexactMembers } from '../app/resource-form/exact-json.ts';
import { type Family, familyOf } from '../app/resource-form/families.ts';
import { ResourceForm, recordIn } from '../app/resource-form/resource-form.tsx';
import { useOrganization } from '../app/use-api.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';

/** A form for a new resource. */
export function NewResource(): ReactElement {
  const { family } = useParams({ from: '/o/$org/$family/new' });
  const preset = useSearch({ from: '/o/$org/$family/new' });
  return <OneForm key={family} name={family} id={null} preset={preset} />;
}

/** A form that changes a resource. */
export function EditResource(): ReactElement {
  const { family, id } = useParams({ from: '/o/$org/$family/$id/edit' });
  return <OneForm key={`${family}/${id}`} name={family} id={id} />;
}

interface OneFormProps {
  name: string;
  id: string | null;
  /** Members that a new one begins with; those that the form does not have are not used. */
  preset?: Body;
}

function OneForm({ name, id, preset = {} }: OneFormProps): ReactElement {
  const family = familyOf(name);
  if (family !== null) return <FormOf family={family} id={id} preset={preset} />;
  return (
    <main className="main" id="main">
      <Empty title="There is no such form" />
    </main>
  );
}

/** Null: it has none, or nobody says: the API still refuses what others own. */
async function manifestOf(id: string, organization: string, signal: AbortSignal): Promise<Exact<'GET /manifests/{id}'> | null> {
  try {
    return await readExact('GET /manifests/{id}', { path: { id } }, { organization, signal });
  } catch (error) {
    if (signal.aborted) throw error;
    return null;
  }
}

function FormOf({ family, id, preset }: { family: Family; id: string | null; preset: Body }): ReactElement {
  const organization = useOrganization();
  const { data, error, refetch } = useQuery({
    queryKey: [organization, 'form', family.api, id],
    queryFn: async ({ signal }) => {
      const { fields } = await family.read();
      if (id === null) return { fields, record: null, withheld: [], manifest: null };
      const bytes = await readBytes(`GET /${family.api}/{id}`, { path: { id } }, { organization, signal });
      const text = new TextDecoder().decode(bytes);
      const record = recordIn(JSON.parse(text));
      return { fields, record, withheld: inexactMembers(text), manifest: await manifestOf(String(record['id']), organization, signal) };
    },
    // What the reader types is not lost to a newer answer, and a form that is opened again begins with what there is.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  if (data !== undefined)
    return (
      <ResourceForm
        family={family}
        fields={data.fields}
        record={data.record}
        preset={preset}
        withheld={data.withheld}
        manifest={data.manifest}
      />
    );
  return (
    <main className="main" id="main">
      {error === null ? <Loading what="the form" /> : <Failure message={error.message} retry={() => void refetch()} />}
    </main>
  );
}
