/** Time zones of the IANA database, as far as the runtime knows them. */

import { LRUCache } from 'lru-cache';

const zoneName = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/;
/** About as many as there are names of zones; each may be spelled in upper and lower case in very many ways. */
const maxFormats = 700;
const formats = new LRUCache<string, Intl.DateTimeFormat>({ max: maxFormats });

/** Whether it is the name of a zone, such as `Europe/Berlin`; a bare offset is none. */
export function isTimeZone(name: string): boolean {
  if (!zoneName.test(name)) return false;
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}

/** What the clocks of the zone show more than UTC at `ms`, in milliseconds. */
export function zoneOffsetMs(zone: string, ms: number): number {
  const shown: Record<string, number> = {};
  for (const { type, value } of formatOf(zone).formatToParts(ms)) shown[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = shown;
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / 1000) * 1000;
}

/** How the clocks of a zone stand in the course of one local day and some hours around it. */
export interface ZoneDay {
  /** What the clocks show more than UTC until `changeAtMs`. */
  beforeMs: number;
  /** When the clocks change; null: they do not. */
  changeAtMs: number | null;
  /** The same from then on. */
  afterMs: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** A change so close to the day still moves some of its minutes. */
const marginMs = 4 * hourMs;
const mostDays = 2000;
const days = new Map<string, ZoneDay>();

/** The day whose local midnight is `localMs` (milliseconds as if it were UTC). A second change in two days is not seen: there is none. */
export function zoneDay(zone: string, localMs: number): ZoneDay {
  const key = `${zone} ${localMs}`;
  const known = days.get(key);
  if (known !== undefined) return known;
  if (days.size >= mostDays) days.clear();
  const day = findDay(zone, localMs);
  days.set(key, day);
  return day;
}

function findDay(zone: string, localMs: number): ZoneDay {
  const middleMs = zoneOffsetMs(zone, localMs + dayMs / 2);
  let [fromMs, toMs] = [localMs - middleMs - marginMs, localMs - middleMs + dayMs + marginMs];
  const [beforeMs, afterMs] = [zoneOffsetMs(zone, fromMs), zoneOffsetMs(zone, toMs)];
  if (beforeMs === afterMs) return { beforeMs, changeAtMs: null, afterMs };
  while (toMs - fromMs > 1000) {
    const halfMs = Math.floor((fromMs + toMs) / 2000) * 1000;
    if (zoneOffsetMs(zone, halfMs) === beforeMs) fromMs = halfMs;
    else toMs = halfMs;
  }
  return { beforeMs, changeAtMs: toMs, afterMs };
}

/** Throws a RangeError for what is no zone. */
function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  formats.set(zone, format);
  return format;
}
