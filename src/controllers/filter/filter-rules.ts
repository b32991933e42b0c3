import { compileFilterDefinition } from '../../compile/filter.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import type { ResourceRules } from '../resource-reconciler.ts';
import { contentOf, refusedContent } from '../shared-content.ts';

/** A filter is only checked: it takes effect in the records of the routes that refer to it. */
export function filterRules(caches: ControllerCaches): ResourceRules<'Filter'> {
  return {
    kind: 'Filter',
    evaluate: async (object, organization) => {
      const { content, unresolved } = contentOf(caches, object, organization);
      if (unresolved !== undefined) return { unresolved };
      const { refusal } = compileFilterDefinition(content);
      return refusal === undefined ? {} : refusedContent(object, refusal);
    },
  };
}
