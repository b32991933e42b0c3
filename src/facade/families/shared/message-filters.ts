import { z } from 'zod';
import { celLimits } from '../../../core/cel-filter.ts';
import { invalidParameter } from '../../../core/errors.ts';
import { statusRange } from '../../../core/status-range.ts';
import { attemptErrorTypes } from '../../../data/shard/attempt-record.ts';
import type { MessageFilter, PayloadFilter } from '../../../data/shard/message-filter.ts';
import { text } from '../../../resources/text.ts';
import type { Call } from '../../http/operation.ts';
import { queryInteger, queryList, queryTime, timeRange } from '../../http/query.ts';

const maxAttempts = 1000;
/** Each has an index that is walked. */
export const maxNamed = 10;
export const responseStatus = z
  .string()
  .regex(/^[1-5](?:\d\d|xx)$/i, 'must be a status such as 503, or a class such as 5xx')
  .describe('A status such as 503, or a class such as 5xx.');

/** `types`: error types beyond those of attempts. */
export function errorTypeQuery<const Type extends string>(types: readonly Type[]) {
  return queryList(z.enum([...attemptErrorTypes, ...types]), 'Only those with this `lastErrorType`.');
}

export const idsQuery = queryList(text(1, 128), 'Only those with these ids.');

/** Any one of the ids or names is enough. `what`: what they are; `more`: further text of the description, with a blank before it. */
export function namedQuery(what: string, more = '') {
  return queryList(text(1, 128), `${what}, at most ${maxNamed}: any one of them.${more}`, maxNamed);
}

export const whereQuery = text(1, celLimits.sourceLength)
  .optional()
  .describe('CEL over event, labels, metadata and headers; a page reads up to 10,000 records for up to 500 ms.');

/** Filters of lists of deliveries and of messages to endpoints, and of events by these. */
export const outcomeParameters = {
  responseStatus: queryList(responseStatus, 'Status or class of the last response; from 300 on of failures only.'),
  attemptsMin: queryInteger({ min: 0, max: maxAttempts }).optional().describe('At least so many attempts.'),
  attemptsMax: queryInteger({ min: 0, max: maxAttempts }).optional().describe('At most so many attempts.'),
  failedFrom: queryTime.optional().describe('An attempt that began then or later failed: ISO 8601.'),
  failedTo: queryTime.optional().describe('An attempt that began then or earlier failed: ISO 8601.'),
};

/** The same with what lists of events have, too. */
export const messageFilterParameters = { id: idsQuery, ...outcomeParameters, where: whereQuery };

interface SentFilter {
  id?: readonly string[] | undefined;
  errorType?: readonly string[] | undefined;
  responseStatus?: readonly string[] | undefined;
  attemptsMin?: number | undefined;
  attemptsMax?: number | undefined;
  from?: string | undefined;
  to?: string | undefined;
  failedFrom?: string | undefined;
  failedTo?: string | undefined;
  where?: string | undefined;
}

/** Parses the parameters. INVALID_QUERY where the end of a range is before its beginning. */
export function messageFilterOf(sent: SentFilter): MessageFilter & PayloadFilter {
  const { id, errorType, responseStatus, attemptsMin, attemptsMax } = sent;
  if (attemptsMin !== undefined && attemptsMax !== undefined && attemptsMax < attemptsMin)
    throw invalidParameter('attemptsMax', 'is less than attemptsMin');
  const failed = timeRange(sent.failedFrom, sent.failedTo, { from: 'failedFrom', to: 'failedTo' });
  return {
    ids: id,
    errorTypes: errorType,
    responseStatuses: responseStatus?.map(statusRange),
    attemptsMin,
    attemptsMax,
    ...timeRange(sent.from, sent.to),
    failedFromMs: failed.fromMs,
    failedToMs: failed.toMs,
    where: sent.where,
  };
}

/** Turn and signal of a call: with them a page yields between pieces, and ends with its request. */
export function turnAndSignal({ turn, signal }: Pick<Call, 'turn' | 'signal'>): Pick<Call, 'turn' | 'signal'> {
  return { turn, signal };
}
