import type { Input, OperationName } from '../api/client.ts';
import { memberTexts } from '../ui/json-layout.ts';

/** Sends a request; returns the text of the response. */
export type Ask = (name: OperationName, input: Input<OperationName>) => Promise<string>;

export const payloadIsGone = 'Its payload is gone: its retention has ended, or the source keeps none.';

/** The members of an event as the API writes them, each as JSON text. `isOfWebhooks`: the event was sent to webhook endpoints. */
export async function writtenEvent(isOfWebhooks: boolean, id: string, ask: Ask): Promise<ReadonlyMap<string, string>> {
  const answer = memberTexts(await ask(isOfWebhooks ? 'GET /webhook-events/{id}' : 'GET /events/{id}', { path: { id } }));
  return (isOfWebhooks ? memberTexts(answer?.get('data') ?? '') : answer) ?? new Map<string, string>();
}
