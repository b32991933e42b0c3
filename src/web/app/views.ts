import { installationViews } from '../api/base.ts';
import { type ListName, listFilters } from './list-filters.ts';
import { storedValue } from './stored-value.ts';

/** Filters of a list, under a name. */
export interface View {
  name: string;
  search: Readonly<Record<string, string>>;
}
export interface ListedView extends View {
  list: ListName;
  /** The operator has configured it. */
  isShipped: boolean;
}

export const longestViewName = 60;
export const maxViews = 50;

type OfOrganization = Partial<Record<ListName, readonly View[]>>;

const lists = Object.keys(listFilters) as ListName[];
const personal = storedValue(
  'posthorn.views',
  (stored): Readonly<Record<string, OfOrganization>> =>
    Object.fromEntries(
      entriesOf(stored).map(([organization, each]) => [
        organization,
        Object.fromEntries(
          lists.map((list) => [
            list,
            membersOf(Object(each)[list])
              .flatMap((view) => viewOf(view, list))
              .slice(0, maxViews),
          ]),
        ),
      ]),
    ),
);
const shipped = lists.flatMap((list) =>
  membersOf(parsed(installationViews))
    .filter((view) => Object(view).screen === list)
    .flatMap((view) => viewOf(view, list))
    .map((view): ListedView => ({ ...view, list, isShipped: true })),
);

/** Those of the operator, then those that the browser keeps, list after list. */
export function useViews(organization: string): readonly ListedView[] {
  const own = personal.use()[organization] ?? {};
  return [...shipped, ...lists.flatMap((list) => (own[list] ?? []).map((view) => ({ ...view, list, isShipped: false })))];
}

/** Replaces the view of the same name, or appends it. */
export function keepView(organization: string, list: ListName, view: View): void {
  change(organization, list, (views) =>
    views.some(({ name }) => name === view.name) ? views.map((each) => (each.name === view.name ? view : each)) : [...views, view],
  );
}

/** The new name is that of no other view. */
export function renameView(organization: string, list: ListName, name: string, next: string): void {
  change(organization, list, (views) => views.map((view) => (view.name === name ? { ...view, name: next } : view)));
}

export function dropView(organization: string, list: ListName, name: string): void {
  change(organization, list, (views) => views.filter((view) => view.name !== name));
}

/** The filters of an address of the list, without its other parameters. */
export function filtersOf(list: ListName, search: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const found = listFilters[list].map((name): [string, unknown] => [name, search[name]]);
  return Object.fromEntries(found.filter((entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== ''));
}

export function haveSameFilters(one: View['search'], other: View['search']): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}

function change(organization: string, list: ListName, next: (views: readonly View[]) => readonly View[]): void {
  personal.set((now) => {
    const own = now[organization] ?? {};
    return { ...now, [organization]: { ...own, [list]: next(own[list] ?? []).slice(0, maxViews) } };
  });
}

/** None where it is no view. */
function viewOf(value: unknown, list: ListName): View[] {
  const { name, search }: Record<string, unknown> = Object(value);
  if (typeof name !== 'string' || name === '' || name.length > longestViewName || typeof search !== 'object') return [];
  return [{ name, search: filtersOf(list, Object(search)) }];
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
}

function membersOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return [];
  }
}
