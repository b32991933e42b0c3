import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { readBytes } from '../api/client.ts';
import { inexactMembers } from '../app/resource-form/exact-json.ts';
import { type Family, familyOf } from '../app/resource-form/families.ts';
import { ResourceForm, recordIn } from '../app/resource-form/resource-form.tsx';
import { useOrganization } from '../app/use-api.ts';
import { Empty, Failure, Loading } from '../ui/notices.tsx';

/** A form for a new resource. */
export function NewResource(): ReactElement {
  const { family } = useParams({ from: '/o/$org/$family/new' });
  return <OneForm key={family} name={family} id={null} />;
}

/** A form that changes a resource. */
export function EditResource(): ReactElement {
  const { family, id } = useParams({ from: '/o/$org/$family/$id/edit' });
  return <OneForm key={`${family}/${id}`} name={family} id={id} />;
}

function OneForm({ name, id }: { name: string; id: string | null }): ReactElement {
  const family = familyOf(name);
  if (family !== null) return <FormOf family={family} id={id} />;
  return (
    <main className="main" id="main">
      <Empty title="There is no such form" />
    </main>
  );
}

function FormOf({ family, id }: { family: Family; id: string | null }): ReactElement {
  const organization = useOrganization();
  const { data, error, refetch } = useQuery({
    queryKey: [organization, 'form', family.api, id],
    queryFn: async ({ signal }) => {
      const { fields } = await family.read();
      if (id === null) return { fields, record: null, withheld: [] };
      const bytes = await readBytes(`GET /${family.api}/{id}`, { path: { id } }, { organization, signal });
      const text = new TextDecoder().decode(bytes);
      return { fields, record: recordIn(JSON.parse(text)), withheld: inexactMembers(text) };
    },
    // What the reader types is not lost to a newer answer, and a form that is opened again begins with what there is.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  if (data !== undefined) return <ResourceForm family={family} fields={data.fields} record={data.record} withheld={data.withheld} />;
  return (
    <main className="main" id="main">
      {error === null ? <Loading what="the form" /> : <Failure message={error.message} retry={() => void refetch()} />}
    </main>
  );
}
