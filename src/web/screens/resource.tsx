import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useParams, useSearch } from '@tanstack/react-router';
import { type ReactElement, useEffect, useState } from 'react';
import { readTagged } from '../api/client.ts';
import type { FormField } from '../api/form-schema.ts';
import type { Exact } from '../app/manifest/exact.ts';
import { manifestOf } from '../app/manifest/manifest-of.ts';
import { inexactMembers } from '../app/resource-form/exact-json.ts';
import { type Body, bodyOfRecord, mergedInto } from '../app/resource-form/form-body.ts';
import { type Family, familyOf } from '../app/resource-form/form-families.ts';
import { ResourceForm, recordIn } from '../app/resource-form/resource-form.tsx';
import { useOrganization } from '../app/use-api.ts';
import { Icon } from '../ui/icon.tsx';
import { Empty, Failure, Loading } from '../ui/notices.tsx';
import { SideBySide } from './lab-results.tsx';

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

/** A resource as its form begins with it. */
interface Opened {
  fields: FormField[];
  /** Null: a new one. */
  record: Body | null;
  /** Its version; null: a new one. */
  tag: string | null;
  withheld: string[];
  manifest: Exact<'GET /manifests/{id}'> | null;
}

async function openedOf(family: Family, id: string | null, organization: string, signal?: AbortSignal): Promise<Opened> {
  const { fields } = await family.read();
  if (id === null) return { fields, record: null, tag: null, withheld: [], manifest: null };
  const options = { organization, ...(signal !== undefined && { signal }) };
  const { bytes, tag } = await readTagged(`GET /${family.api}/{id}`, { path: { id } }, options);
  const text = new TextDecoder().decode(bytes);
  const record = recordIn(JSON.parse(text));
  return { fields, record, tag, withheld: inexactMembers(text), manifest: await manifestOf(String(record['id']), organization, signal) };
}

function FormOf({ family, id, preset }: { family: Family; id: string | null; preset: Body }): ReactElement {
  const organization = useOrganization();
  const client = useQueryClient();
  const queryKey = [organization, 'form', family.api, id];
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: ({ signal }) => openedOf(family, id, organization, signal),
    // What the reader types is not lost to a newer answer, and a form that is opened again begins with what there is.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  /** What another has saved since the form was opened. */
  const [newer, setNewer] = useState<Opened | null>(null);
  /** The form restarts with the saved record, and this change of it. */
  const [begun, setBegun] = useState<{ change: Body; times: number }>({ change: {}, times: 0 });
  useEffect(() => {
    // The button that had the focus is gone with the form before.
    if (begun.times > 0) document.getElementById('main')?.focus();
  }, [begun.times]);
  if (data === undefined)
    return (
      <main className="main" id="main">
        {error === null ? <Loading what="the form" /> : <Failure message={error.message} retry={() => void refetch()} />}
      </main>
    );
  const beginWith = (change: Body): void => {
    client.setQueryData(queryKey, newer);
    setNewer(null);
    setBegun({ change, times: begun.times + 1 });
  };
  return (
    <ResourceForm
      key={begun.times}
      family={family}
      fields={data.fields}
      record={data.record}
      tag={data.tag}
      preset={preset}
      begun={begun.change}
      withheld={data.withheld}
      manifest={data.manifest}
      onOutdated={async (sent) => {
        const there = await openedOf(family, id, organization);
        const { before, after } = sidesOf(there, sent);
        // The answer to an equal request was lost.
        if (JSON.stringify(before) === JSON.stringify(after)) return there.record;
        setNewer(there);
        return null;
      }}
      outdated={newer === null ? null : (sent, isWhole) => <Outdated newer={newer} sent={sent} isWhole={isWhole} beginWith={beginWith} />}
    />
  );
}

/** What is saved, and what a change makes of it. */
function sidesOf({ fields, record }: Opened, sent: Body): { before: Body; after: Body } {
  const before = bodyOfRecord(fields, record ?? {});
  return { before, after: bodyOfRecord(fields, mergedInto(fields, before, sent)) };
}

interface OutdatedProps {
  newer: Opened;
  sent: Body;
  isWhole: boolean;
  beginWith: (change: Body) => void;
}

/** Shows what another has saved since the form was opened, beside what this form makes of it. */
function Outdated({ newer, sent, isWhole, beginWith }: OutdatedProps): ReactElement {
  const { before, after } = sidesOf(newer, sent);
  return (
    <>
      <div className="note is-bad" role="alert">
        <Icon name="fail" />
        <div>
          <p>
            <strong>{String(newer.record?.['name'] ?? newer.record?.['url'] ?? 'It')} was changed meanwhile.</strong> Nothing was saved:
            what differs now is below.
          </p>
          <p className="btn-row">
            <button type="button" className="btn is-sm" onClick={() => beginWith({})}>
              Take what is saved
            </button>
            <button type="button" className="btn is-sm" disabled={!isWhole} onClick={() => beginWith(sent)}>
              Keep my changes
            </button>
          </p>
        </div>
      </div>
      <SideBySide label="What differs" titles={['Saved', 'With my changes']} before={linesOf(before)} after={linesOf(after)} />
    </>
  );
}

function linesOf(body: Body): string[] {
  return JSON.stringify(body, null, 2).split('\n');
}
