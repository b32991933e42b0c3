import { createContext, type ReactElement, use, useEffect, useState } from 'react';
import { countdown, duration } from './format.ts';

/** `UTC`, or the reader's own. */
export type Zone = 'UTC' | 'local';
export const ZoneContext = createContext<Zone>('UTC');

const second = 1000;
const minute = 60 * second;
const day = 86_400_000;

/** The time, in milliseconds since the epoch, updated every `everyMs`. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** A time of the API; relative up to a day, with the exact one on hover. */
export function Ago({ at }: { at: string }): ReactElement {
  const now = useNow(10_000);
  const zone = use(ZoneContext);
  const age = now - Date.parse(at);
  const exact = exactTime(at, zone);
  return (
    <time dateTime={at} title={exact} className="nowrap">
      {age < 5000 ? 'now' : age < day ? `${duration(age - (age % (age < minute ? second : minute)))} ago` : exact}
    </time>
  );
}

/** A time of the day to the millisecond, with its date where that is not today. */
export function Clock({ at }: { at: string }): ReactElement {
  const zone = use(ZoneContext);
  return (
    <time dateTime={at} title={exactTime(at, zone)} className="nowrap">
      {timeOfDay(at, zone)}
    </time>
  );
}

/** The time of the day to the minute. */
export function TimeOfDay({ at }: { at: string }): ReactElement {
  const zone = use(ZoneContext);
  return (
    <time dateTime={at} title={exactTime(at, zone)} className="nowrap">
      {clockOf(new Date(at), zone).slice(0, 5)}
    </time>
  );
}

/** The day of a time. */
export function Day({ at }: { at: string }): ReactElement {
  const zone = use(ZoneContext);
  return (
    <time dateTime={at} title={exactTime(at, zone)} className="nowrap">
      {dayOf(new Date(at), zone)}
    </time>
  );
}

/** Day and time to the minute. */
export function Minute({ at }: { at: string }): ReactElement {
  const zone = use(ZoneContext);
  const date = new Date(at);
  return (
    <time dateTime={at} title={exactTime(at, zone)} className="nowrap">
      {dayOf(date, zone)} {clockOf(date, zone).slice(0, 5)}
    </time>
  );
}

/** What is left until a time, second by second. It is not announced. */
export function Countdown({ at }: { at: string }): ReactElement {
  const now = useNow(1000);
  const zone = use(ZoneContext);
  return (
    <time dateTime={at} title={exactTime(at, zone)} className="nowrap">
      {countdown(Date.parse(at) - now)}
    </time>
  );
}

/** `in 0:42`, then `now`. */
export function Until({ at }: { at: string }): ReactElement {
  const now = useNow(1000);
  return Date.parse(at) <= now ? (
    <>now</>
  ) : (
    <>
      in <Countdown at={at} />
    </>
  );
}

/** Such as `2026-01-31 14:02:11.884 UTC`. */
function exactTime(at: string, zone: Zone): string {
  const iso = isoIn(new Date(at), zone);
  return iso === '' ? at : `${iso.slice(0, 10)} ${iso.slice(11, 23)}${zone === 'UTC' ? ' UTC' : ''}`;
}

/** As an axis shows it: the time of the day where the axis spans up to a day, else the day. */
export function timeLabel(at: string, zone: Zone, spanMs: number): string {
  const date = new Date(at);
  return spanMs <= day ? clockOf(date, zone).slice(0, 5) : dayOf(date, zone).slice(5);
}

/** A day and a time to the minute, such as `01-31 14:05`. */
export function minuteLabel(at: string, zone: Zone): string {
  const date = new Date(at);
  return `${dayOf(date, zone).slice(5)} ${clockOf(date, zone).slice(0, 5)}`;
}

function timeOfDay(at: string, zone: Zone): string {
  const iso = isoIn(new Date(at), zone);
  const [day, clock] = [iso.slice(0, 10), iso.slice(11, 23)];
  return day === dayOf(new Date(), zone) ? clock : `${day} ${clock}`;
}

/** The time at which a day, such as `2026-01-31`, begins. */
export function dayBegin(day: string, zone: Zone): string {
  return new Date(zone === 'UTC' ? day : `${day}T00:00`).toISOString();
}

/** Such as `2026-01-31`. */
export function dayOf(date: Date, zone: Zone): string {
  return isoIn(date, zone).slice(0, 10);
}

/** With milliseconds. */
function clockOf(date: Date, zone: Zone): string {
  return isoIn(date, zone).slice(11, 23);
}

/** A table shows hundreds of times: `toLocaleString` would make a formatter for each. */
function isoIn(date: Date, zone: Zone): string {
  const shifted = zone === 'UTC' ? date : new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return Number.isNaN(shifted.getTime()) ? '' : shifted.toISOString();
}
