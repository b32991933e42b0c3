import { urlOf } from '../api/client.ts';

/** The call of the API that creates something, for a POSIX shell. `body`: JSON. */
export function createCommand(organization: string, path: string, body: string): string {
  return `curl ${location.origin}${urlOf(path, {}, organization)} \\\n  -H "x-api-key: $KEY" -H 'content-type: application/json' \\\n  -d '${body}'`;
}

/** Sends an event to the endpoints of customers. */
export function sendEventCommand(organization: string): string {
  return createCommand(organization, '/send-event', '{"eventType": "order.paid", "payload": {"total": 20}}');
}
