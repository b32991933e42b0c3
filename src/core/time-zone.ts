/** Time zones of the IANA database that the runtime supports. */

import { LRUCache } from 'lru-cache';

const zoneName = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/;
/** About as many as there are names of zones; each may be spelled in upper and lower case in very many ways. */
const maxNames = 700;
const names = new LRUCache<string, string>({ max: maxNames });

/** Whether it is the name of a zone, such as `Europe/Berlin`; a bare offset is none. */
export function isTimeZone(name: string): boolean {
  return canonicalTimeZone(name) !== null;
}

/** The one spelling of the name, so that what is kept by zone is kept once; null for what is no zone. */
export function canonicalTimeZone(name: string): string | null {
  const known = names.get(name);
  if (known !== undefined) return known;
  if (!zoneName.test(name)) return null;
  try {
    const { timeZone } = new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions();
    names.set(name, timeZone);
    return timeZone;
  } catch {
    return null;
  }
}
