import type { StatusRange } from '../../core/status-range.ts';

/** Ids or names, any one of which is enough. */
export type OneOrMore = string | readonly string[];

/** None for an empty filter. */
export function listed(some: OneOrMore | undefined): readonly string[] {
  return some === undefined ? [] : typeof some === 'string' ? [some] : some;
}

/** Whether it is one of those selected, or none is. */
export function isAmong(some: OneOrMore | undefined, one: string | null): boolean {
  return some === undefined || (one !== null && listed(some).includes(one));
}

/** Filters of message lists of both families. Of a list of values any one is enough; what is absent lets all pass. */
export interface MessageFilter {
  ids?: readonly string[] | undefined;
  /** Error types of the last attempt, or their substitutes where none could be made. */
  errorTypes?: readonly string[] | undefined;
  /** Statuses of the last response; from 300 on only where the attempt failed. */
  responseStatuses?: readonly StatusRange[] | undefined;
  attemptsMin?: number | undefined;
  attemptsMax?: number | undefined;
  /** Time range of creation, in milliseconds since the epoch, both ends included. */
  fromMs?: number | undefined;
  toMs?: number | undefined;
  /** Time range in which any attempt that failed began. */
  failedFromMs?: number | undefined;
  failedToMs?: number | undefined;
}

/** Filters of lists of messages and events without an index: each page is a bounded scan (`payload-search.ts`). */
export interface PayloadFilter {
  /** An expression (`compileCelSearch`) that the event meets. */
  where?: string | undefined;
}
