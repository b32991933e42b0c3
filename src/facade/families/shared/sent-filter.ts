import { z } from 'zod';
import { celLimits } from '../../../core/cel-filter.ts';
import { isPosthornError, PosthornError } from '../../../core/errors.ts';
import { text } from '../../../resources/text.ts';
import { queryTime } from '../../http/query.ts';
import { maxNamed, responseStatus } from './message-filters.ts';

/** The list filters of messages in a body, as `filter`. */

const attempts = z.int().min(0).max(1000);

export const sentIds = z.array(text(1, 128)).min(1).max(100).describe('Ids.');

const sentName = text(1, 128);
/** One id or name, or several, any of which may match. */
export const sentNames = z
  .union([sentName, z.array(sentName).min(1).max(maxNamed)])
  .meta({ id: 'OneOrSeveral', description: `One, or a list of at most ${maxNamed}: any one of them.` });

export const sentOutcome = {
  responseStatus: z.array(responseStatus).min(1).max(20).describe('Statuses or classes of the last response.'),
  attemptsMin: attempts.describe('At least so many attempts.'),
  attemptsMax: attempts.describe('At most so many attempts.'),
  from: queryTime.describe('Created then or later.'),
  to: queryTime.describe('Created then or earlier.'),
  failedFrom: queryTime.describe('An attempt that began then or later failed.'),
  failedTo: queryTime.describe('An attempt that began then or earlier failed.'),
  where: text(1, celLimits.sourceLength).describe('CEL over event, labels, metadata and headers.'),
};

/** VALIDATION_FAILED that names a field of the filter; `complaint` continues the sentence. */
export function wrongInFilter(name: string, complaint: string): PosthornError {
  return wrongField(`filter.${name}`, complaint);
}

/** Runs what complains of the parameters of a list. A complaint becomes VALIDATION_FAILED that names the field of the filter, or the cursor beside it. */
export function inFilterWords<T>(work: () => T): T {
  const inWords = (error: unknown): never => {
    const [[name, [complaint = '']] = ['', []]] = isPosthornError(error, 'INVALID_QUERY') ? Object.entries(error.details ?? {}) : [];
    if (name === '') throw error;
    throw name === 'cursor' ? wrongField(name, complaint) : wrongInFilter(name, complaint);
  };
  try {
    const made = work();
    return made instanceof Promise ? (made.catch(inWords) as T) : made;
  } catch (error) {
    return inWords(error);
  }
}

function wrongField(field: string, complaint: string): PosthornError {
  return new PosthornError('VALIDATION_FAILED', `${field} ${complaint}.`, { details: { [field]: [complaint] } });
}
