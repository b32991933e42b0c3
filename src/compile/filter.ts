import { isPosthornError } from '../core/errors.ts';
import { compileFilter } from '../core/filter-evaluation.ts';
import type { FilterDefinition } from '../core/records.ts';
import type { ContentOf } from '../resources/sharing.ts';
import { type Compiled, refuse } from './compiled.ts';

/** Refuses conditions that do not compile: unknown paths, wrong values for their operator, patterns that RE2 does not take. */
export function compileFilterDefinition(filter: Pick<ContentOf<'Filter'>, 'logic' | 'conditions'>): Compiled<FilterDefinition> {
  const definition: FilterDefinition = {
    logic: filter.logic,
    conditions: filter.conditions.map(({ field, operator, value }) => ({ field, operator, ...(value === undefined ? {} : { value }) })),
  };
  try {
    compileFilter(definition);
  } catch (error) {
    if (isPosthornError(error, 'VALIDATION_FAILED')) return refuse('InvalidFilter', error.message);
    throw error;
  }
  return { record: definition };
}
