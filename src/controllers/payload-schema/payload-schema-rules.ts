import { compilePayloadSchema } from '../../compile/payload-schema.ts';
import type { CodeChecks } from '../code-checks.ts';
import type { ResourceRules } from '../resource-reconciler.ts';

/** Routes name the record of a schema, so that many share it. */
export function payloadSchemaRules(checks: CodeChecks): ResourceRules<'PayloadSchema'> {
  return {
    kind: 'PayloadSchema',
    evaluate: async (object, organization, published) => {
      const { jsonSchema, refusal } = await checks.schema(object, organization);
      if (refusal !== undefined) return { refusal };
      const record = compilePayloadSchema(object, { organization, jsonSchema, published: await published() });
      return { record, status: { version: record.version } };
    },
  };
}
