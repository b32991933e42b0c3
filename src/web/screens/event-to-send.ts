import { parsedJson } from '../app/resource-form/exact-json.ts';
import type { Zone } from '../ui/time.tsx';
import { type DeliveryTime, longestDelaySeconds, sentTime } from './send-time.ts';

/** An event as it is typed. */
export interface EventDraft {
  /** Empty: not chosen. */
  eventTypeId: string;
  /** Empty: of all applications. */
  applicationId: string;
  /** Null: nothing is typed, so it is the example of the event type. */
  payload: string | null;
  when: DeliveryTime;
  /** Seconds; empty: it does not expire. */
  expiry: string;
}

interface Complete {
  draft: EventDraft;
  /** Name of the event type; undefined: not read yet. */
  eventType: string | undefined;
  payload: string;
  zone: Zone;
}

/** The body of send-event, in which the payload is as it was typed; or what is missing. */
export function eventToSend({ draft, eventType, payload, zone }: Complete): { body: string } | { problem: string } {
  if (draft.eventTypeId === '') return { problem: 'Choose an event type.' };
  if (eventType === undefined) return { problem: 'The event type is not read yet.' };
  if (parsedJson(payload) === undefined) return { problem: 'The payload is not JSON.' };
  const time = sentTime(draft.when, zone);
  if (time === null) return { problem: draft.when.kind === 'at' ? 'Choose a time.' : 'The delay is not a whole number.' };
  if ((time.delaySeconds ?? 0) > longestDelaySeconds) return { problem: 'The delay is more than 7 days.' };
  if (!/^\d{0,9}$/.test(draft.expiry)) return { problem: 'The expiry is not a whole number of seconds.' };
  const { applicationId, expiry } = draft;
  const members = {
    eventType,
    ...(applicationId !== '' && { applicationId }),
    ...time,
    ...(expiry !== '' && { expiresAfterSeconds: Number(expiry) }),
  };
  // Numbers of the payload keep the digits that were typed.
  return { body: `${JSON.stringify(members).slice(0, -1)},"payload":${payload.trim()}}` };
}
