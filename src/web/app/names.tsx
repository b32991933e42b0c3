import { Link } from '@tanstack/react-router';
import { type ReactElement, useMemo } from 'react';
import { shortId } from '../ui/format.ts';
import { idPattern } from './ids.ts';
import { useOrganization, useRead } from './use-api.ts';

const anId = new RegExp(`\\b${idPattern}\\b`, 'g');

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

/** A link to whatever has this id, under its name where that is known. */
export function IdLink({ id }: { id: string }): ReactElement {
  const org = useOrganization();
  const name = useNames().get(id);
  return (
    <Link className={name === undefined ? 'id' : undefined} to="/o/$org/id/$id" params={{ org, id }} title={id}>
      {name ?? shortId(id)}
    </Link>
  );
}

/** A sentence of the API, in which ids are links. */
export function WithLinks({ text }: { text: string }): ReactElement {
  const ids = text.match(anId) ?? [];
  return (
    <>
      {text.split(anId).map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a sentence keeps its order
        <span key={index}>
          {part}
          {ids[index] === undefined ? null : <IdLink id={ids[index]} />}
        </span>
      ))}
    </>
  );
}
