import { compileWebhookApplication, type ManagedApplication } from '../../compile/webhook-application.ts';
import type { WebhookApplication } from '../../data/webhooks/webhooks.ts';
import type { RecordRules } from '../resource-reconciler.ts';

export function webhookApplicationRules(): RecordRules<'WebhookApplication', ManagedApplication, WebhookApplication> {
  return { kind: 'WebhookApplication', evaluate: async (object, organization) => compileWebhookApplication(object, organization) };
}
