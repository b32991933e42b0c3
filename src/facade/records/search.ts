import { foldedText } from '../../core/text-search.ts';

/** Whether one of the texts contains what is searched for, whatever the case; without a search all do. */
export function matchesText(search: string | undefined, ...texts: readonly (string | undefined)[]): boolean {
  const wanted = foldedText(search ?? '');
  return wanted === '' || texts.some((text) => text !== undefined && foldedText(text).includes(wanted));
}
