import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { Palette, type PaletteEntry } from '../ui/palette.tsx';
import { groups, type Place } from './navigation.ts';
import { useOrganization, useRead } from './use-api.ts';
import { type ListedView, useViews } from './views.ts';

const anId = /^[a-z]{2,5}_[A-Za-z0-9_-]+$/;
const shown = 8;

/** The palette over all that has a name or an id. */
export function Search({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }): ReactElement {
  const org = useOrganization();
  const navigate = useNavigate();
  const [value, setValue] = useState('');
  const text = value.trim();
  const lists = { isEnabled: isOpen };
  const { data: sources } = useRead('GET /sources', { query: { pageSize: 100 } }, lists);
  const { data: routes } = useRead('GET /routes', { query: { pageSize: 100 } }, lists);
  const { data: destinations } = useRead('GET /destinations', { query: { pageSize: 100 } }, lists);

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
  const named = (kind: string, icon: string, found: readonly { id: string; name: string; slug: string }[] = []): PaletteEntry[] =>
    found
      .filter(({ name, slug }) => matches(name, text) || matches(slug, text))
      .slice(0, shown)
      .map(({ id, name }) => ({ id, word: name, hint: kind, icon, act: open(id) }));
  const places = groups
    .flatMap((group) => group.places)
    .filter(({ word }) => matches(word, text))
    .map(({ to, word, icon }: Place): PaletteEntry => ({ id: to, word, icon, act: () => void navigate({ to, params: { org } }) }));
  const ids = anId.test(text) ? [{ id: text, word: text, hint: 'open its story', icon: 'event', act: open(text) }] : [];
  const objects = [
    ...named('source', 'source', sources?.data),
    ...named('route', 'route', routes?.data),
    ...named('destination', 'destination', destinations?.data),
  ];
  return (
    <Palette
      isOpen={isOpen}
      onClose={close}
      value={value}
      onValue={setValue}
      groups={[
        { title: 'Id', entries: ids },
        { title: 'Resources', entries: text === '' ? [] : objects },
        { title: 'Views', entries: views },
        { title: 'Go to', entries: places },
      ]}
    />
  );
}

function matches(word: string, text: string): boolean {
  return word.toLowerCase().includes(text.toLowerCase());
}
