import type { Refusal } from '../../compile/compiled.ts';
import type { OrganizationFacts } from '../../compile/organization.ts';
import { compileWebhookEventType } from '../../compile/webhook-event-type.ts';
import type { Clock } from '../../core/clock.ts';
import { parsedJson } from '../../core/json-text.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { CodeChecks, SchemaCheck } from '../code-checks.ts';
import type { ResourceRules } from '../resource-reconciler.ts';

export function webhookEventTypeRules(checks: CodeChecks, clock: Clock): ResourceRules<'WebhookEventType'> {
  return {
    kind: 'WebhookEventType',
    evaluate: async (object, organization, published) => {
      const { jsonSchema = null, refusal = exampleRefusal(object) } = await schemaOf(checks, object, organization);
      if (refusal !== null) return { refusal };
      const record = compileWebhookEventType(object, {
        organization,
        schema: jsonSchema,
        published: await published(),
        nowMs: clock.now(),
      });
      const { schemaVersion, deprecatedAtMs } = record;
      const deprecatedAt = deprecatedAtMs === null ? {} : { deprecatedAt: new Date(deprecatedAtMs).toISOString() };
      return { record, status: { schemaVersion, ...deprecatedAt } };
    },
  };
}

async function schemaOf(
  checks: CodeChecks,
  { spec: { schema } }: PosthornObject<'WebhookEventType'>,
  organization: OrganizationFacts,
): Promise<SchemaCheck | { jsonSchema?: undefined; refusal?: undefined }> {
  if (schema === undefined) return {};
  const { value, problem } = parsedJson(schema);
  if (problem !== undefined) return { refusal: { reason: 'InvalidSchema', message: `schema: ${problem}` } };
  return await checks.jsonSchema('schema', value, organization);
}

function exampleRefusal({ spec: { examplePayload } }: PosthornObject<'WebhookEventType'>): Refusal | null {
  if (examplePayload === undefined) return null;
  const { problem } = parsedJson(examplePayload);
  return problem === undefined ? null : { reason: 'InvalidExamplePayload', message: `examplePayload: ${problem}` };
}
