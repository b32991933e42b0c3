// Made by hack/gen-web-api.ts from the OpenAPI document. Do not edit.
import type { FormField } from '../form-schema.ts';

export const fields: FormField[] = [
  {"name":"name","help":"Name by which events are sent, such as order.paid. In Kubernetes it is the same with - for each _.","node":{"kind":"text"},"isMain":true,"isRequired":true},
  {"name":"displayName","help":"Name shown to people.","node":{"kind":"text"},"isNullable":true,"isMain":true},
  {"name":"description","help":"What this is for.","node":{"kind":"text"},"isNullable":true,"isMain":true},
  {"name":"category","help":"Group that it is listed under.","node":{"kind":"text"},"isNullable":true,"isMain":true},
  {"name":"isEnabled","help":"Whether events of this type are taken.","node":{"kind":"boolean"},"isMain":true,"default":true},
  {"name":"schema","help":"JSON Schema as text: draft 2020-12 or, by its $schema, draft 07; at most 65,536 bytes.","node":{"kind":"text","isLong":true},"isNullable":true},
  {"name":"examplePayload","help":"JSON as text.","node":{"kind":"text","isLong":true},"isNullable":true},
  {"name":"documentationUrl","help":"Where subscribers read more.","node":{"kind":"text"},"isNullable":true},
  {"name":"isDeprecated","help":"Whether subscribers should move to something else. Events are still taken.","node":{"kind":"boolean"},"default":false},
  {"name":"deprecatedMessage","help":"What subscribers should do about it.","node":{"kind":"text"},"isNullable":true},
  {"name":"expiresAfterSeconds","help":"Seconds after which a message of an event of this type is given up that has not been delivered: a dead letter whose last error is expired. Where the event or an endpoint has fewer, these. Empty: never.","node":{"kind":"number"},"isNullable":true},
];
