// Made by hack/gen-web-api.ts from the OpenAPI document. Do not edit.
import type { FormField } from '../form-schema.ts';

export const fields: FormField[] = [
  {"name":"name","help":"Name shown to people.","node":{"kind":"text"},"isMain":true,"isRequired":true},
  {"name":"sourceId","help":"Where the events come from. Cannot be changed.","node":{"kind":"reference","to":"sources"},"isMain":true,"isRequired":true,"isFixed":true},
  {"name":"destinationIds","help":"Where the events go.","node":{"kind":"references","to":"destinations"},"isMain":true},
  {"name":"filterId","help":"A shared filter, in place of conditions of its own. Emptied, it is removed.","node":{"kind":"reference","to":"filters"},"isNullable":true,"isMain":true},
  {"name":"transformId","help":"The transform. Emptied, it is removed.","node":{"kind":"reference","to":"transforms"},"isNullable":true,"isMain":true},
  {"name":"description","help":"What this is for.","node":{"kind":"text"},"isNullable":true,"isMain":true},
  {"name":"enabled","help":"While off, deliveries are accepted and wait.","node":{"kind":"boolean"},"isMain":true,"default":true},
  {"name":"slug","help":"Name in addresses and in Kubernetes. Empty: made of the name.","node":{"kind":"text"},"isFixed":true},
  {"name":"filterConditions","help":"Conditions of its own, in place of a shared filter. Emptied, they are removed.","node":{"kind":"objects","fields":[{"name":"field","help":"payload.x.y, headers.X, query.x (a parameter of the URL), or a path into the payload. Names that contain dots need brackets and quotes: fields[\"System.State\"].","node":{"kind":"text"},"isRequired":true},{"name":"operator","help":"How the field is compared with the value.","node":{"kind":"choice","values":["equals","not_equals","contains","not_contains","starts_with","ends_with","matches","gt","gte","lt","lte","exists","not_exists","in","not_in"]},"isRequired":true},{"name":"value","help":"What the field is compared with; a list for in and not_in, none for exists and not_exists.","node":{"kind":"json"}}]},"isNullable":true},
  {"name":"filterLogic","help":"Whether all inline conditions must hold or one. OR only with them.","node":{"kind":"choice","values":["AND","OR"]},"default":"AND"},
  {"name":"schemaId","help":"The schema that payloads must meet. Emptied, it is removed.","node":{"kind":"reference","to":"schemas"},"isNullable":true},
  {"name":"priority","help":"Higher values run first.","node":{"kind":"number"},"default":0},
  {"name":"failoverDestinationIds","help":"The destinations that are tried in this order when one fails.","node":{"kind":"references","to":"destinations"},"default":[]},
  {"name":"failoverAfterAttempts","help":"Failed attempts after which the first failover destination is tried.","node":{"kind":"number"},"default":3},
  {"name":"circuitCooldownSeconds","help":"Seconds that an open circuit waits before it is probed.","node":{"kind":"number"},"default":300},
  {"name":"circuitFailureThreshold","help":"Consecutive failed attempts that open the circuit.","node":{"kind":"number"},"default":5},
  {"name":"circuitProbeSuccessThreshold","help":"Successful probes that close the circuit.","node":{"kind":"number"},"default":2},
  {"name":"expectedResponse","help":"What counts as success. Empty: any 2xx.","node":{"kind":"object","fields":[{"name":"statusCodes","help":"Statuses that count as success.","node":{"kind":"numbers"}},{"name":"bodyContains","help":"Text that the body must contain within what is read of it.","node":{"kind":"text"}}]},"isNullable":true,"isReplaced":true},
  {"name":"notifyOnFailure","help":"Alerts when deliveries fail for good, and when a circuit opens.","node":{"kind":"boolean"},"default":false},
  {"name":"notifyOnSuccess","help":"Alerts when deliveries succeed.","node":{"kind":"boolean"},"default":false},
  {"name":"notifyOnRecovery","help":"Alerts when deliveries succeed again after a failure that was worth an alert, and when a circuit closes.","node":{"kind":"boolean"},"default":false},
  {"name":"notifyEmails","help":"Up to 20 e-mail addresses, separated by commas. Emptied, they are removed.","node":{"kind":"text"},"isNullable":true},
  {"name":"notificationChannelIds","help":"The channels that get the alerts. Empty: all that are enabled.","node":{"kind":"references","to":"notification-channels"},"isNullable":true,"isAllWithout":true},
  {"name":"failureThreshold","help":"Consecutive failed messages, to one destination, before there is a failure alert.","node":{"kind":"number"},"default":3},
];
