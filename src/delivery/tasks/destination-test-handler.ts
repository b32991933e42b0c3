import { randomBytes } from 'node:crypto';
import { egressRules } from '../../core/egress-policy.ts';
import { PosthornError } from '../../core/errors.ts';
import { base32 } from '../../core/ids.ts';
import { loopTurns } from '../../core/loop-turns.ts';
import type { DestinationRecord, HttpDestinationRecord, WarehouseDestinationRecord } from '../../core/records.ts';
import { detailField } from '../../data/shard/shown-attempt-detail.ts';
import { type DestinationTestResult, destinationTestTask } from '../../data/tasks/destination-test-task.ts';
import { attemptRecord, testDetailPolicy } from '../attempts/attempt-outcome.ts';
import { thinTest } from '../attempts/thin-event.ts';
import type { PlanSources } from '../plans/delivery-plan.ts';
import { exchange } from '../targets/http/http-exchange.ts';
import { httpPlan } from '../targets/http/http-plan.ts';
import { withTemplates } from '../targets/http/own-templates.ts';
import { requestHeaders } from '../targets/http/request-headers.ts';
import { BatchObjects } from '../targets/warehouse/batch-objects.ts';
import { upload } from '../targets/warehouse/upload.ts';
import { uploadRecord } from '../targets/warehouse/warehouse-attempt.ts';
import { warehousePlan } from '../targets/warehouse/warehouse-plan.ts';
import { awaitedRecord } from './awaited-record.ts';
import { type TaskContext, type TaskHandler, taskHandler } from './task-handler.ts';

/** Sends a payload to a destination once, as a delivery would: no record, no circuit, no counters, throttle or retry. */
export function destinationTestHandler(options: PlanSources): TaskHandler {
  return taskHandler(destinationTestTask, async ({ destinationId, generation, payload }, context) => {
    const destination = await awaitedRecord(options, 'destination', destinationId, generation, context);
    if (destination === null)
      return failure('not_ready', 'The destination is not programmed: its conditions say why, such as a Secret that is missing.');
    if (destination.type !== 'http') return await testWarehouse(options, destination, payload, context);
    return await testHttp(options, destination, payload, context);
  });
}

async function testHttp(
  options: PlanSources,
  destination: HttpDestinationRecord,
  payload: string | null,
  { org, signal }: TaskContext,
): Promise<DestinationTestResult> {
  const { registry, keyring, dispatchers, allowed, payloadLinks, clock, userAgent, attemptDetail } = options;
  const egress = egressRules(allowed, await registry.get('organization', org));
  const target = httpPlan(destination, { keyring, dispatchers, egress, payloadLinks });
  if (target === null) return failure('secret_decryption_failed', 'A secret of the destination cannot be opened.');
  const startedAtMs = clock.now();
  const full = Buffer.from(payload ?? JSON.stringify(sampleEvent(destination, startedAtMs)));
  const id = `test_${base32(randomBytes(10))}`;
  const { thin, secrets: own } = target;
  const sent =
    thin === null ? { body: full, secrets: own } : thinTest({ org, id, type: null, payload: full, secrets: own }, thin, startedAtMs);
  if (typeof sent === 'string') return failure('blocked', sent);
  const { body, secrets } = sent;
  const ids = { messageId: id, eventId: id };
  const event = { headers: [], contentType: 'application/json', payload: full };
  const message = { ...event, ...ids, source: 'test', receivedAtMs: startedAtMs, attempt: 1 };
  const headers = requestHeaders(
    target.templates === null ? target.headers : withTemplates(target.headers, target.templates, message),
    { ...event, payload: body },
    { ...ids, number: 1, timestampSeconds: Math.floor(startedAtMs / 1000), userAgent, failover: null },
  );
  headers.push('x-posthorn-test', 'true');
  const request = { origin: target.origin, path: target.path, method: target.method, headers, body, secrets };
  const result = await exchange(target.dispatcher(), request, { timeoutMs: target.timeoutMs, clock, signal });
  if (signal.aborted && result.type === 'error')
    throw new PosthornError('UNAVAILABLE', 'The delivery worker is stopping.', { retryAfterSeconds: 1 });
  const attempt = attemptRecord(
    result,
    { expectedResponse: null },
    { startedAtMs, endedAtMs: clock.now() },
    testDetailPolicy(attemptDetail),
  );
  const detail = detailField(attempt.detail);
  const latency = attempt.durationMs;
  if (attempt.errorType === null && attempt.responseStatus !== null) {
    const { responseStatus: statusCode, responseBody } = attempt;
    return {
      success: true,
      statusCode,
      latency,
      responseBody: responseBody ?? '',
      message: `The destination answered ${statusCode}.`,
      ...detail,
    };
  }
  return {
    success: false,
    statusCode: attempt.responseStatus,
    latency,
    error: attempt.errorType ?? 'network',
    message: attempt.errorMessage ?? 'The destination did not take the test.',
    ...detail,
  };
}

/** Writes one record into a file of its own, beside those of deliveries. */
async function testWarehouse(
  options: PlanSources,
  destination: WarehouseDestinationRecord,
  payload: string | null,
  { org, signal }: TaskContext,
): Promise<DestinationTestResult> {
  const { registry, allowed, clock } = options;
  const egress = egressRules(allowed, await registry.get('organization', org));
  const target = await warehousePlan(destination, { ...options, egress });
  if (target === null) return failure('secret_decryption_failed', 'A secret of the destination cannot be opened.');
  if ('refusal' in target) return failure('blocked', `The destination must not be used: ${target.refusal.message}.`);
  const startedAtMs = clock.now();
  const id = `test_${base32(randomBytes(10))}`;
  const body = Buffer.from(payload ?? JSON.stringify(sampleEvent(destination, startedAtMs)));
  const headers: [string, string][] = [['x-posthorn-test', 'true']];
  const content = new BatchObjects(id, target.layout, target.mapping);
  const record = { eventId: id, sourceSlug: 'test', receivedAtMs: startedAtMs, query: '', headers, payload: body };
  const added = await loopTurns.of(org).runShort(content.add(record));
  if (added !== 'added') return failure('record_too_large', 'The record of this payload would be too large.');
  const objects = content.take();
  const result = await upload(target.store, objects, { secrets: target.secrets, dispatcher: target.dispatcher(), clock, signal });
  if (signal.aborted && result.type === 'error')
    throw new PosthornError('UNAVAILABLE', 'The delivery worker is stopping.', { retryAfterSeconds: 1 });
  const attempt = uploadRecord(result, { startedAtMs, endedAtMs: clock.now() });
  const [object] = objects;
  if (attempt.errorType === null && object !== undefined) {
    const written = { key: object.key, size: object.body.length, count: 1 };
    return { success: true, result: written, message: `The store has taken ${object.key}.` };
  }
  return {
    success: false,
    statusCode: attempt.responseStatus,
    latency: attempt.durationMs,
    error: attempt.errorType ?? 'network',
    message: attempt.errorMessage ?? 'The store did not take the test.',
  };
}

function failure(error: string, message: string): DestinationTestResult {
  return { success: false, statusCode: null, latency: 0, error, message };
}

function sampleEvent({ id, name }: DestinationRecord, nowMs: number): Record<string, unknown> {
  return {
    type: 'posthorn.test',
    createdAt: new Date(nowMs).toISOString(),
    data: { message: 'This is a test event of Posthorn.', destination: { id, name } },
  };
}
