import type { StatusRange } from './status-range.ts';

/** An id or name, or a list of them. A record matches a list when it has one of its values. */
export type OneOrSeveral = string | string[];

/** Selects what a replay sends again; all conditions have to be met. Times are in milliseconds since the epoch, both ends included. */
export interface ReplayFilter {
  ids?: string[];
  /** Statuses of deliveries, messages or events, as in `what` of the record. */
  statuses: string[];
  sourceId?: OneOrSeveral;
  routeId?: OneOrSeveral;
  destinationId?: OneOrSeveral;
  applicationId?: OneOrSeveral;
  endpointId?: OneOrSeveral;
  eventType?: OneOrSeveral;
  errorTypes?: string[];
  responseStatuses?: StatusRange[];
  attemptsMin?: number;
  attemptsMax?: number;
  fromMs?: number;
  toMs?: number;
  failedFromMs?: number;
  failedToMs?: number;
  where?: string;
}

export interface ReplayRecord {
  v: number;
  id: string;
  org: string;
  slug: string;
  /** Uid of the object. */
  uid: string;
  /** Hash of organization, name and spec without `suspend` and `cancel`: a replay with a known identity is not run again. */
  identity: string;
  what: 'deliveries' | 'messages' | 'events';
  filter: ReplayFilter;
  ratePerSecond: number;
  /** Where all of them are sent to instead. */
  destinationId?: string;
  stopAfterFailurePercent?: number;
  /** Hops of the request that has made it (`hops.ts`); absent: it had none. */
  hop?: number;
  isDryRun: boolean;
  isSuspended: boolean;
  isCancelled: boolean;
  /** When the object was created. */
  createdAtMs: number;
  generation: number;
}
