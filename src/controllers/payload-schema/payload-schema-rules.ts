import { compilePayloadSchema } from '../../compile/payload-schema.ts';
import type { CodeChecks } from '../code-checks.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import type { ResourceRules } from '../resource-reconciler.ts';
import { contentOf, refusedContent } from '../shared-content.ts';

/** Routes name the record of a schema, so that many share it. */
export function payloadSchemaRules(caches: ControllerCaches, checks: CodeChecks): ResourceRules<'PayloadSchema'> {
  return {
    kind: 'PayloadSchema',
    evaluate: async (object, organization, published) => {
      const { content, unresolved } = contentOf(caches, object, organization);
      if (unresolved !== undefined) return { unresolved, isWithdrawn: true };
      const { jsonSchema, refusal } = await checks.schema(content, organization);
      if (refusal !== undefined) return refusedContent(object, refusal);
      const record = compilePayloadSchema(object, { organization, jsonSchema, published: await published() });
      return { record, status: { version: record.version } };
    },
  };
}
