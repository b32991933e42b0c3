// Made by hack/gen-web-api.ts from the OpenAPI document. Do not edit.
import type { FormField } from '../form-schema.ts';

export const fields: FormField[] = [
  {"name":"applicationId","help":"The application that it belongs to.","node":{"kind":"reference","to":"webhook-applications"},"isMain":true,"isRequired":true,"isFixed":true},
  {"name":"url","help":"Where messages are posted to: https, and http where the installation allows it.","node":{"kind":"text"},"isMain":true,"isRequired":true},
  {"name":"description","help":"What this is for.","node":{"kind":"text"},"isNullable":true,"isMain":true},
  {"name":"headers","help":"Sent with every message, each name once; none that Posthorn, the connection or browsers alone set. Secrets that are stored are shown as bullets, which keep them.","node":{"kind":"objects","fields":[{"name":"name","help":"Name of the header.","node":{"kind":"text"},"isRequired":true},{"name":"value","help":"Value of the header.","node":{"kind":"text"},"isRequired":true}]},"isMain":true},
  {"name":"isDisabled","help":"Whether new events skip it and queued messages wait.","node":{"kind":"boolean"},"isMain":true},
  {"name":"headerTemplates","help":"Headers whose values are made of the message for every attempt, each name once and none that headers has. One without a value is left out.","node":{"kind":"objects","fields":[{"name":"name","help":"Name of the header.","node":{"kind":"text"},"isRequired":true},{"name":"template","help":"Value of the header, with placeholders such as {{ event.type }} or {{ payload.order.id }}.","node":{"kind":"text"},"isRequired":true}]}},
  {"name":"timeoutSeconds","help":"One deadline over connect, headers and body, in seconds.","node":{"kind":"number"},"default":30},
  {"name":"rateLimitPerSecond","help":"Messages in a second; more of them wait. 0: unlimited. After a pause one second's worth may go at once, so the first second may have twice as many; “Rate limit strict” forbids that.","node":{"kind":"number"},"default":0},
  {"name":"rateLimitStrict","help":"Messages go out evenly, one at a time, so no window of a second has more than “Rate limit per second”. Very high rates may not be reached.","node":{"kind":"boolean"}},
  {"name":"ordered","help":"Messages go out in the order in which they were accepted, one at a time; a message that has failed is tried again before the next one is sent.","node":{"kind":"boolean"}},
  {"name":"retryDelays","help":"Waits before the retries, in seconds: one for each retry, and no further one. Empty: those of the installation.","node":{"kind":"numbers"},"isNullable":true},
  {"name":"expiresAfterSeconds","help":"Seconds after which a message to the endpoint is given up that has not been delivered: a dead letter whose last error is expired. Where the event or its type has fewer, these. Empty: never.","node":{"kind":"number"},"isNullable":true},
  {"name":"successStatusCodes","help":"Statuses that count as success, and no others: numbers from 200 to 599, or classes such as 2xx. One that is success is nothing else: a 410 does not disable, a 429 does not delay. Empty: any 2xx.","node":{"kind":"numbers"},"isNullable":true},
  {"name":"payloadForm","help":"Body: full, the payload, or thin, a JSON object with a link to it, which needs POSTHORN_PUBLIC_URL. Default: full.","node":{"kind":"choice","values":["full","thin"]},"default":"full"},
  {"name":"signatureScheme","help":"Signatures in webhook-signature: hmac-sha256 (v1), ed25519 (v1a, by a key that Posthorn makes, which publicKey verifies) or both. The secret and the key stay when the scheme changes.","node":{"kind":"choice","values":["hmac-sha256","ed25519","both"]},"default":"hmac-sha256"},
  {"name":"circuitFailureThreshold","help":"Consecutive failed attempts that open the circuit.","node":{"kind":"number"},"default":5},
  {"name":"circuitSuccessThreshold","help":"Successful probes that close the circuit.","node":{"kind":"number"},"default":2},
  {"name":"circuitCooldownSeconds","help":"Seconds that an open circuit waits before it is probed.","node":{"kind":"number"},"default":60},
  {"name":"disabledReason","help":"Why it is disabled. Enabling it removes the reason.","node":{"kind":"text"},"isNullable":true},
  {"name":"disableAfterHours","help":"Hours of uninterrupted failure after which an endpoint is disabled. 0: never. Default: that of the application, then POSTHORN_WEBHOOK_DISABLE_AFTER_HOURS.","node":{"kind":"number"},"isNullable":true},
];
