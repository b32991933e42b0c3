import { compileTransform } from '../../compile/transform.ts';
import type { CodeChecks } from '../code-checks.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import type { ResourceRules } from '../resource-reconciler.ts';
import { contentOf, refusedContent } from '../shared-content.ts';

/** Routes name the record of a transform, so that many share it. */
export function transformRules(caches: ControllerCaches, checks: CodeChecks): ResourceRules<'Transform'> {
  return {
    kind: 'Transform',
    evaluate: async (object, organization) => {
      const { content, unresolved } = contentOf(caches, object, organization);
      if (unresolved !== undefined) return { unresolved, isWithdrawn: true };
      const refusal = await checks.transform(content, organization);
      return refusal === null ? { record: compileTransform(object, content, organization) } : refusedContent(object, refusal);
    },
  };
}
