import { LRUCache } from 'lru-cache';
import type { Clock } from '../../core/clock.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { storedFormat } from '../../core/readable-payload.ts';
import type { TransformRecord } from '../../core/records.ts';
import { describesPayload } from '../../core/reserved-headers.ts';
import type { Job, Outcome } from '../../data/queue/delivery-queue.ts';
import type { EventOutput } from '../../data/queue/event-output.ts';
import type { RedisDeliveryQueue } from '../../data/queue/redis-delivery-queue.ts';
import type { StoredEvent } from '../../data/shard/event-text.ts';
import { describeEvent } from '../../sandbox/event-description.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { ReadyHttpPlan, ReadyPlan, ReadyWebhookPlan } from '../plans/delivery-plan.ts';

/** A message whose event may have to be transformed. */
export interface TransformableMessage {
  messageKey: string;
  eventId: string;
  target: { org: string; routeId: string };
  hasOutput: boolean;
}

export type Unsent = Extract<Outcome, { type: 'unsent' | 'dead' }>;
type Made = { output: EventOutput; warning: string | null; unsent?: undefined } | { output?: undefined; unsent: Unsent };
/** `warning`: of the transform, when this process has run it lately. */
export type Transformed =
  | { event: StoredEvent; warning: string | null; unsent?: undefined }
  | { event?: undefined; warning?: undefined; unsent: Unsent };

/** The sandbox has not run the transform: it has too much to do, or a process of it does not start. */
export class TransformUnavailableError extends PosthornError {}

export type TransformingPlan = ReadyHttpPlan | ReadyWebhookPlan;

/** Whether something else than the payload goes out. */
export function hasTransform(job: Job, plan: ReadyPlan): plan is TransformingPlan {
  if (plan.type === 'webhook') return job.transformId !== null;
  return plan.type === 'http' && (job.hasOutput || plan.transform !== null);
}

/** Content of a job as sent; for endpoints whose subscriptions have the same transform it is made once. Rejects as `EventTransformer` does. */
export async function transformedJob(
  job: Job,
  event: StoredEvent,
  plan: TransformingPlan,
  { transformer, queue }: { transformer: EventTransformer; queue: RedisDeliveryQueue },
): Promise<Transformed> {
  if (plan.type === 'http') return await transformer.transformed(job, event, plan.transform, queue);
  const { transformId } = job;
  const transform = transformId === null ? null : await plan.transform(transformId);
  if (transformId === null || (transform === null && !job.hasOutput))
    return { unsent: { type: 'unsent', status: 'transform_failed', reason: 'the transform of the subscription is gone', tookMs: 0 } };
  return await transformer.transformed({ ...job, target: { ...job.target, routeId: transformId } }, event, transform, queue);
}

/** More than two batches have. */
const maxWarnings = 2500;

/**
 * Replaces an event's payload with the output of its route's transform. The transform runs once for an event and a route,
 * before the first attempt; its output is kept before anything is sent, so that every retry and replay sends the same bytes.
 */
export class EventTransformer {
  readonly #sandbox: Sandbox;
  readonly #clock: Clock;
  /** Warnings of stored outputs, by event and route: batches are written after their transforms, and failed deliveries are tried again. */
  readonly #warnings = new LRUCache<string, string>({ max: maxWarnings });
  /** Transforms under way, by event and route: messages that are taken together share one. */
  readonly #underWay = new Map<string, Promise<Made>>();

  constructor({ sandbox, clock }: { sandbox: Sandbox; clock: Clock }) {
    this.#sandbox = sandbox;
    this.#clock = clock;
  }

  /** Rejects with UNAVAILABLE without Redis, or when its memory is full; with `TransformUnavailableError` when the sandbox is overloaded. */
  async transformed(
    message: TransformableMessage,
    event: StoredEvent,
    transform: TransformRecord | null,
    queue: RedisDeliveryQueue,
  ): Promise<Transformed> {
    const kept = await queue.output(message, null);
    if (kept !== null) return { event: withOutput(event, kept), warning: this.#warnings.get(outputKey(message)) ?? null };
    if (transform === null) return { unsent: { type: 'dead', attempt: null, reason: 'payload_not_found' } };
    const made = await this.#make(message, event, transform);
    if (made.unsent !== undefined) return { unsent: made.unsent };
    if (made.warning !== null) this.#warnings.set(outputKey(message), made.warning);
    const { contentType, body } = (await queue.output(message, made.output)) ?? made.output;
    return { event: withOutput(event, { contentType, body }), warning: made.warning };
  }

  #make(message: TransformableMessage, event: StoredEvent, transform: TransformRecord): Promise<Made> {
    const key = `${outputKey(message)} ${transform.id} ${transform.generation}`;
    const underWay = this.#underWay.get(key);
    if (underWay !== undefined) return underWay;
    const work = this.#run(message, event, transform).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, work);
    return work;
  }

  async #run({ eventId, target }: TransformableMessage, event: StoredEvent, transform: TransformRecord): Promise<Made> {
    const startedAtMs = this.#clock.now();
    const description = describeEvent({ ...event, id: eventId, source: event.sourceSlug });
    const format = storedFormat(event.contentType, event.headers);
    const run = this.#sandbox.transform({ organization: target.org, part: target.routeId }, transform, {
      description,
      payload: event.payload,
      format,
    });
    const { output, problem } = await run.catch((error: unknown) => {
      if (!isPosthornError(error, 'UNAVAILABLE')) throw error;
      throw new TransformUnavailableError('UNAVAILABLE', error.message, { retryAfterSeconds: 1, cause: error });
    });
    const tookMs = Math.max(0, this.#clock.now() - startedAtMs);
    if (problem !== undefined) {
      const at = problem.line === null ? '' : ` (line ${problem.line}${problem.column === null ? '' : `, column ${problem.column}`})`;
      return { unsent: { type: 'unsent', status: 'transform_failed', reason: problem.message + at, tookMs } };
    }
    if (output === null) return { unsent: { type: 'unsent', status: 'filtered', reason: null, tookMs } };
    return { output: { contentType: output.contentType, body: Buffer.from(output.body) }, warning: output.warning };
  }
}

function outputKey({ eventId, target }: TransformableMessage): string {
  return `${eventId} ${target.routeId}`;
}

/** The event with another payload, without the headers that describe the one that came in. */
export function withOutput(event: StoredEvent, { contentType, body }: EventOutput): StoredEvent {
  return { ...event, contentType, headers: event.headers.filter(([name]) => !describesPayload(name)), payload: body };
}
