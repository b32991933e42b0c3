import { compileFilterDefinition } from '../../compile/filter.ts';
import type { ResourceRules } from '../resource-reconciler.ts';

/** A filter is only checked: it takes effect in the records of the routes that refer to it. */
export function filterRules(): ResourceRules<'Filter'> {
  return {
    kind: 'Filter',
    evaluate: async ({ spec }) => {
      const { refusal } = compileFilterDefinition(spec);
      return refusal === undefined ? {} : { refusal };
    },
  };
}
