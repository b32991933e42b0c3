import { Link } from '@tanstack/react-router';
import { type ReactElement, useMemo } from 'react';
import { shortId } from '../ui/format.ts';
import { Clock } from '../ui/time.tsx';
import { idPattern } from './id-list.ts';
import { useOrganization, useRead } from './use-api.ts';

/** An id, or a time as the API writes it. */
const idOrTime = new RegExp(`\\b(?:${idPattern}|\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z)`, 'g');

/** Names of routes, destinations and sources by their ids: of the newest hundred of each. */
export function useNames(): ReadonlyMap<string, string> {
  const first = { query: { pageSize: 100 } };
  const { data: routes } = useRead('GET /routes', first);
  const { data: destinations } = useRead('GET /destinations', first);
  const { data: sources } = useRead('GET /sources', first);
  return useMemo(() => {
    const all = [...(routes?.data ?? []), ...(destinations?.data ?? []), ...(sources?.data ?? [])];
    return new Map(all.map(({ id, name }) => [id, name]));
  }, [routes, destinations, sources]);
}

/** A link to whatever has this id, under its name where that is known. `called`: its name, where the caller has it. */
export function IdLink({ id, called }: { id: string; called?: string }): ReactElement {
  const org = useOrganization();
  const names = useNames();
  const name = called ?? names.get(id);
  return (
    <Link className={name === undefined ? 'id' : undefined} to="/o/$org/id/$id" params={{ org, id }} title={id}>
      {name ?? shortId(id)}
    </Link>
  );
}

/** As a filter shows an id: by the name of what has it. A slug stays as it is. */
export function filteredName(id: string): ReactElement {
  if (id.startsWith('app_')) return <ApplicationName id={id} />;
  return id.startsWith('ep_') ? <EndpointAddress id={id} /> : <Name id={id} />;
}

function Name({ id }: { id: string }): ReactElement {
  return <span title={id}>{useNames().get(id) ?? id}</span>;
}

function ApplicationName({ id }: { id: string }): ReactElement {
  const { data } = useRead('GET /webhook-applications/{id}', { path: { id } });
  return <span title={id}>{data?.data.name ?? id}</span>;
}

function EndpointAddress({ id }: { id: string }): ReactElement {
  const { data } = useRead('GET /webhook-endpoints/{id}', { path: { id } });
  return <span title={id}>{data?.data.url ?? id}</span>;
}

/** A sentence of the API, in which ids are links and times are in the zone of the reader. */
export function WithLinks({ text }: { text: string }): ReactElement {
  const found = text.match(idOrTime) ?? [];
  return (
    <>
      {text.split(idOrTime).map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a sentence keeps its order
        <span key={index}>
          {part}
          <Found text={found[index]} />
        </span>
      ))}
    </>
  );
}

function Found({ text }: { text: string | undefined }): ReactElement | null {
  if (text === undefined) return null;
  return text.endsWith('Z') ? <Clock at={text} /> : <IdLink id={text} />;
}
