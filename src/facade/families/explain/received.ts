import type { EventView } from '../../../data/shard/messages.ts';
import { isoTime } from '../../records/record-fields.ts';
import { counted, happened, type Step } from './explanation.ts';

/** How an event came in. */
export function receivedSteps(event: EventView): Step[] {
  const { id, source, sourceId, method, size, receivedAtMs, signatureValid, duplicateOf, notBeforeMs, webhook } = event;
  const bytes = counted(size, 'byte');
  if (webhook !== null)
    return [
      happened(receivedAtMs, 'received', `An event of the type ${source} was sent with send-event (${bytes}).`, {
        eventId: id,
        eventTypeId: sourceId,
      }),
      ...scheduledSteps(receivedAtMs, notBeforeMs),
    ];
  const steps = [
    happened(receivedAtMs, 'received', `The source ${source} received the event (${method}, ${bytes}).`, { eventId: id, sourceId }),
  ];
  const verified =
    signatureValid === null
      ? 'The source checks no signatures.'
      : signatureValid
        ? 'Its signature is valid.'
        : 'Its signature is not valid.';
  steps.push(happened(receivedAtMs, 'verified', verified, { signatureValid }));
  if (duplicateOf !== null)
    steps.push(
      happened(
        receivedAtMs,
        'duplicate',
        `It repeats the event ${duplicateOf}: it came again after the window for duplicates, or a replay has sent it again.`,
        {
          duplicateOf,
        },
      ),
    );
  return [...steps, ...scheduledSteps(receivedAtMs, notBeforeMs)];
}

function scheduledSteps(receivedAtMs: number, notBeforeMs: number | null): Step[] {
  if (notBeforeMs === null) return [];
  const deliverAt = isoTime(notBeforeMs);
  return [happened(receivedAtMs, 'scheduled', `Its sender scheduled it for ${deliverAt}: no attempt is made before.`, { deliverAt })];
}
