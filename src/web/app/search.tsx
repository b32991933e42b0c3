import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { Palette, type PaletteEntry } from '../ui/palette.tsx';
import { idsIn, maxIds } from './id-list.ts';
import { groups, type Place } from './navigation.ts';
import { maxSearchLength, useSettled } from './settled.ts';
import { useOrganization, useRead } from './use-api.ts';
import { type ListedView, useViews } from './views.ts';

const shown = 8;

/** The palette over all that has a name or an id. */
export function Search({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const [value, setValue] = useState('');
  const text = value.trim();
  const pasted = idsIn(text);
  const resources = useResources(isOpen, pasted.length > 1 ? '' : text);

  const views = useViews(org)
    .filter(({ name }) => text !== '' && matches(name, text))
    .slice(0, shown)
    .map(({ name, list, search, isShipped }: ListedView): PaletteEntry => {
      const place = groups.flatMap((group) => group.places).find(({ to }) => to === `/o/$org/${list}`);
      return {
        id: `view ${list} ${isShipped} ${name}`,
        word: name,
        hint: `view of ${place?.word.toLowerCase() ?? list}`,
        icon: place?.icon ?? 'event',
        act: () => void navigate({ to: `/o/$org/${list}`, params: { org }, search }),
      };
    });
  const close = (): void => {
    setValue('');
    onClose();
  };
  const open =
    (id: string): (() => void) =>
    () =>
      void navigate({ to: '/o/$org/id/$id', params: { org, id } });
  const places = groups
    .flatMap((group) => group.places)
    .filter(({ word }) => matches(word, text))
    .map(({ to, word, icon }: Place): PaletteEntry => ({ id: to, word, icon, act: () => void navigate({ to, params: { org } }) }));
  const [only, ...more] = pasted;
  const several = {
    id: 'ids',
    word: pasted.length > maxIds ? `The first ${maxIds} of ${pasted.length} ids` : `${pasted.length} ids`,
    hint: 'what became of each',
    icon: 'event',
    act: () => void navigate({ to: '/o/$org/ids', params: { org }, search: { ids: pasted.slice(0, maxIds).join(',') } }),
  };
  const one = (id: string): PaletteEntry => ({ id, word: id, hint: 'open its story', icon: 'event', act: open(id) });
  const objects = resources.found.map(({ id, name, kind, icon }): PaletteEntry => ({ id, word: name, hint: kind, icon, act: open(id) }));
  return (
    <Palette
      isOpen={isOpen}
      onClose={close}
      value={value}
      onValue={setValue}
      isReading={resources.isReading}
      problem={resources.problem}
      groups={[
        { title: 'Id', entries: only === undefined ? [] : more.length === 0 ? [one(only)] : [several] },
        { title: 'Resources', entries: objects },
        { title: 'Views', entries: views },
        { title: 'Go to', entries: places },
      ]}
    />
  );
}

type Named = { id: string; name: string; slug?: string };
interface Found extends Named {
  kind: string;
  icon: string;
}

/** Resources with the text in their names: at once those that were read when the palette opened, then what the API finds besides. */
function useResources(isOpen: boolean, text: string): { found: Found[]; isReading: boolean; problem: string | null } {
  const isTooLong = text.length > maxSearchLength;
  const asksFor = isTooLong ? '' : text;
  const search = useSettled(asksFor);
  const first = { query: { pageSize: 100 } };
  const opened = { isEnabled: isOpen };
  const paged = { query: { pageSize: shown, search } };
  const limited = { query: { limit: shown, search } };
  const asked = { isEnabled: isOpen && search !== '' };
  const [sources, routes, destinations] = [
    { kind: 'source', icon: 'source' },
    { kind: 'route', icon: 'route' },
    { kind: 'destination', icon: 'destination' },
  ] as const;
  const answers = [
    { ...sources, read: useRead('GET /sources', first, opened) },
    { ...routes, read: useRead('GET /routes', first, opened) },
    { ...destinations, read: useRead('GET /destinations', first, opened) },
    { ...sources, read: useRead('GET /sources', paged, asked) },
    { ...routes, read: useRead('GET /routes', paged, asked) },
    { ...destinations, read: useRead('GET /destinations', paged, asked) },
    { kind: 'application', icon: 'apps', read: useRead('GET /webhook-applications', limited, asked) },
    { kind: 'event type', icon: 'catalog', read: useRead('GET /event-types', limited, asked) },
    { kind: 'cron job', icon: 'cron', read: useRead('GET /cron', paged, asked) },
  ];
  const failed = answers.map(({ read }) => read.error).find((error) => error !== null) ?? null;
  const found = new Map<string, Found>();
  for (const { kind, icon, read } of answers) {
    const rows = rowsIn(read.data);
    const own = rows.filter(({ name, slug = '' }) => text !== '' && (matches(name, text) || matches(slug, text))).slice(0, shown);
    for (const { id, name } of own) found.set(id, { id, name, kind, icon });
  }
  return {
    found: [...found.values()],
    isReading: asksFor !== '' && (search !== asksFor || answers.some(({ read }) => read.isFetching)),
    problem: isTooLong
      ? `A search has at most ${maxSearchLength} characters.`
      : failed === null || text === ''
        ? null
        : `Not everything was searched: ${failed.message}`,
  };
}

function rowsIn(answer: { data: Named[] } | { cronJobs: Named[] } | undefined): readonly Named[] {
  if (answer === undefined) return [];
  return 'cronJobs' in answer ? answer.cronJobs : answer.data;
}

function matches(word: string, text: string): boolean {
  return word.toLowerCase().includes(text.toLowerCase());
}
