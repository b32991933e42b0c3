/** Whether one of the texts contains what is searched for, whatever the case; without a search all do. */
export function matchesText(search: string | undefined, ...texts: readonly (string | undefined)[]): boolean {
  const wanted = search?.toLowerCase() ?? '';
  return wanted === '' || texts.some((text) => text?.toLowerCase().includes(wanted));
}
