import { randomBytes } from 'node:crypto';
import { PosthornError } from '../../core/errors.ts';
import { base32 } from '../../core/ids.ts';
import { detailField } from '../../data/shard/shown-attempt-detail.ts';
import { type EndpointTestResult, endpointTestTask } from '../../data/tasks/endpoint-test-task.ts';
import { attemptRecord, goneStatus, testDetailPolicy } from '../attempts/attempt-outcome.ts';
import { thinTest } from '../attempts/thin-event.ts';
import { exchangeWithEndpoint, ownHeaders } from '../attempts/webhook-attempt.ts';
import type { PlanSources } from '../plans/delivery-plan.ts';
import { keysAt, type WebhookPlans } from '../plans/webhook-plan.ts';
import { type TaskHandler, taskHandler } from './task-handler.ts';

const testEventType = 'posthorn.test';

/**
 * Sends a payload to a webhook endpoint once, as a message would be: no record, no circuit, no counters, limits or retry, and a 410
 * does not disable it. `plans` are made of the endpoint as it is now.
 */
export function endpointTestHandler(
  { clock, userAgent, attemptDetail }: Pick<PlanSources, 'clock' | 'userAgent' | 'attemptDetail'>,
  plans: WebhookPlans,
): TaskHandler {
  return taskHandler(endpointTestTask, async ({ applicationId, endpointId, eventType, payload }, { org, signal }) => {
    const plan = await plans.of(org, applicationId, endpointId);
    if (plan === null) return failure('endpoint_not_found', 'The endpoint is gone.');
    const startedAtMs = clock.now();
    const keys = keysAt(plan.secrets, startedAtMs);
    if (keys === null) return failure('secret_decryption_failed', 'A signing secret of the endpoint cannot be opened.');
    if (plan.headers === null)
      return failure('secret_decryption_failed', 'A credential among the headers of the endpoint cannot be opened.');
    const id = `test_${base32(randomBytes(10))}`;
    const type = eventType ?? testEventType;
    const full = Buffer.from(payload ?? JSON.stringify(sample(endpointId, startedAtMs)));
    const { thin, sentSecrets: secrets } = plan;
    const sent = thin === null ? { body: full, secrets } : thinTest({ org, id, type, payload: full, secrets }, thin, startedAtMs);
    if (typeof sent === 'string') return failure('blocked', sent);
    const event = { headers: [], contentType: 'application/json', sourceSlug: type, receivedAtMs: startedAtMs, payload: full };
    const identity = { messageId: id, eventId: id, number: 1, timestampSeconds: Math.floor(startedAtMs / 1000), userAgent };
    const own = ownHeaders({ headers: plan.headers, templates: plan.templates }, event, identity);
    const result = await exchangeWithEndpoint(
      plan,
      { own: [...own, ['x-posthorn-test', 'true']], keys, event: { ...event, payload: sent.body }, secrets: sent.secrets, identity },
      { clock, signal },
    );
    if (signal.aborted && result.type === 'error')
      throw new PosthornError('UNAVAILABLE', 'The delivery worker is stopping.', { retryAfterSeconds: 1 });
    const attempt = attemptRecord(result, plan, { startedAtMs, endedAtMs: clock.now() }, testDetailPolicy(attemptDetail));
    const { responseStatus, responseBody, durationMs, errorMessage } = attempt;
    const errorType = attempt.errorType !== null && responseStatus === goneStatus ? 'gone' : attempt.errorType;
    return {
      success: errorType === null,
      responseStatus,
      responseTimeMs: durationMs,
      responseBody,
      errorType,
      errorMessage,
      ...detailField(attempt.detail),
    };
  });
}

function failure(errorType: string, errorMessage: string): EndpointTestResult {
  return { success: false, responseStatus: null, responseTimeMs: 0, responseBody: null, errorType, errorMessage };
}

function sample(endpointId: string, nowMs: number): Record<string, unknown> {
  return {
    type: testEventType,
    createdAt: new Date(nowMs).toISOString(),
    data: { message: 'This is a test event of Posthorn.', endpointId },
  };
}
