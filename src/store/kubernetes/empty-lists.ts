import { isRecord } from '../../resources/field-tree.ts';

/** Whether an empty list of `sent` is missing in `stored`. */
export function lacksEmptyList(sent: unknown, stored: unknown): boolean {
  if (Array.isArray(sent)) return sent.length === 0 && stored === undefined;
  if (!isRecord(sent)) return false;
  const found = isRecord(stored) ? stored : {};
  return Object.entries(sent).some(([name, member]) => lacksEmptyList(member, found[name]));
}

/** JSON pointers, after `pointer`, to the empty lists of `stored` where `sent` has null. */
export function clearedLists(sent: unknown, stored: unknown, pointer: string): string[] {
  if (sent === null) return Array.isArray(stored) && stored.length === 0 ? [pointer] : [];
  if (!isRecord(sent) || !isRecord(stored)) return [];
  return Object.entries(sent).flatMap(([name, member]) => clearedLists(member, stored[name], `${pointer}/${escaped(name)}`));
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
