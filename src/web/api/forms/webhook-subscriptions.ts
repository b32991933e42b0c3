// Made by hack/gen-web-api.ts from the OpenAPI document. Do not edit.
import type { FormField } from '../form-schema.ts';

export const fields: FormField[] = [
  {"name":"endpointId","help":"The endpoint.","node":{"kind":"reference","to":"webhook-endpoints"},"isMain":true,"isRequired":true,"isFixed":true},
  {"name":"eventTypeId","help":"The event type.","node":{"kind":"reference","to":"event-types"},"isMain":true,"isRequired":true,"isFixed":true},
  {"name":"filterExpression","help":"CEL over event.type, event.data, labels and metadata; an event for which it is not true is not sent.","node":{"kind":"text"},"isNullable":true,"isMain":true},
  {"name":"labelFilters","help":"The label that an event must have, or the list of those of which it must have one.","node":{"kind":"json","isObject":true},"isMain":true},
  {"name":"transformId","help":"The transform that creates the sent payload.","node":{"kind":"reference","to":"transforms"},"isNullable":true,"isMain":true},
  {"name":"isEnabled","help":"While off, events skip it.","node":{"kind":"boolean"},"isMain":true,"default":true},
  {"name":"labelFilterMode","help":"Whether all label filters must be met, or any.","node":{"kind":"choice","values":["all","any"]},"default":"all"},
];
