import { maxTestPayloadBytes } from '../../core/payload-link.ts';
import type { Job } from '../../data/queue/delivery-queue.ts';
import type { StoredEvent } from '../../data/shard/event-text.ts';
import type { ReadyPlan } from '../plans/delivery-plan.ts';
import type { HttpResult } from '../targets/http/http-exchange.ts';
import type { ThinForm } from '../targets/http/http-plan.ts';
import type { SentSecrets } from '../targets/http/sent-secrets.ts';
import { NoPublicUrlError } from '../targets/refusals.ts';
import { withOutput } from './transformed-event.ts';

/** Returns how the target gets links; null: it gets payloads. */
export function thinFormOf(plan: ReadyPlan): ThinForm | null {
  switch (plan.type) {
    case 'http':
      return plan.http.thin;
    case 'webhook':
      return plan.thin;
    case 'alert':
    case 'warehouse':
      return null;
    default:
      return plan satisfies never;
  }
}

/** Content of a message as sent. */
export interface SentEvent {
  event: StoredEvent;
  /** Values that are masked in the recorded response. */
  secrets: SentSecrets;
}

interface Linking {
  /** Id of the event in the delivery. */
  eventId: string;
  /** Event type of a webhook; null: events of sources have none. */
  eventType: string | null;
  /** The route or transform whose output goes out; null: the payload goes out as it came. */
  outputOf: string | null;
  nowMs: number;
}

/** The event with a link in place of its payload. Null: the worker has no base URL for links. */
export function thinEvent(
  { target, messageId }: Pick<Job, 'target' | 'messageId'>,
  { event, secrets }: SentEvent,
  { links, contentType, contentEncoding }: ThinForm,
  { eventId, eventType, outputOf, nowMs }: Linking,
): SentEvent | null {
  if (links === null) return null;
  const link = links.make({ org: target.org, message: { id: messageId, outputOf, contentType, contentEncoding }, payload: null }, nowMs);
  const body = thinBody({ id: eventId, type: eventType, receivedAtMs: event.receivedAtMs, url: link.url });
  return { event: withOutput(event, { contentType: 'application/json', body }), secrets: secrets.and(link.token) };
}

/** Makes the thin body of a test. The link contains the payload, because a test is not stored. Returns a text if the test cannot be sent. */
export function thinTest(
  { org, id, type, payload, secrets }: { org: string; id: string; type: string | null; payload: Buffer; secrets: SentSecrets },
  { links }: ThinForm,
  nowMs: number,
): { body: Buffer; secrets: SentSecrets } | string {
  if (links === null) return `The test was not sent: ${new NoPublicUrlError().message}.`;
  const text = payload.toString();
  if (Buffer.byteLength(JSON.stringify(text)) > maxTestPayloadBytes)
    return `The test was not sent: the payload of a test of a thin delivery may have at most ${maxTestPayloadBytes} bytes as a JSON string, because it is in the link.`;
  const link = links.make({ org, message: null, payload: text }, nowMs);
  return { body: thinBody({ id, type, receivedAtMs: nowMs, url: link.url }), secrets: secrets.and(link.token) };
}

/** Returns the result of an attempt without a link to send. */
export function refusedWithoutLink(): HttpResult {
  return { type: 'error', error: new NoPublicUrlError() };
}

function thinBody({ id, type, receivedAtMs, url }: { id: string; type: string | null; receivedAtMs: number; url: string }): Buffer {
  return Buffer.from(JSON.stringify({ id, type, timestamp: new Date(receivedAtMs).toISOString(), url }));
}
