import { compileTransform } from '../../compile/transform.ts';
import type { CodeChecks } from '../code-checks.ts';
import type { ResourceRules } from '../resource-reconciler.ts';

/** Routes name the record of a transform, so that many share it. */
export function transformRules(checks: CodeChecks): ResourceRules<'Transform'> {
  return {
    kind: 'Transform',
    evaluate: async (object, organization) => {
      const refusal = await checks.transform(object, organization);
      return refusal === null ? { record: compileTransform(object, organization) } : { refusal };
    },
  };
}
