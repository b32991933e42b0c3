// Made by hack/gen-web-api.ts from the OpenAPI document. Do not edit.
import type { FormField } from '../form-schema.ts';

export const fields: FormField[] = [
  {"name":"name","help":"Name shown to people.","node":{"kind":"text"},"isMain":true,"isRequired":true},
  {"name":"externalId","help":"The sender's own id of the customer.","node":{"kind":"text"},"isNullable":true,"isMain":true,"isFixed":true},
  {"name":"isDisabled","help":"Whether events skip it and queued messages wait.","node":{"kind":"boolean"},"isMain":true,"default":false},
  {"name":"metadata","help":"Anything, at most 8192 bytes as JSON.","node":{"kind":"json","isObject":true}},
  {"name":"rateLimitPerSecond","help":"Messages in a second, to all its endpoints together.","node":{"kind":"number"},"default":100},
  {"name":"rateLimitPerMinute","help":"Messages in a minute.","node":{"kind":"number"},"default":1000},
  {"name":"rateLimitPerHour","help":"Messages in an hour.","node":{"kind":"number"},"default":10000},
  {"name":"disabledReason","help":"Why it is disabled. Enabling it removes the reason.","node":{"kind":"text"},"isNullable":true},
  {"name":"disableAfterHours","help":"Hours of uninterrupted failure after which an endpoint is disabled. 0: never. Default: that of the application, then POSTHORN_WEBHOOK_DISABLE_AFTER_HOURS.","node":{"kind":"number"},"isNullable":true},
];
