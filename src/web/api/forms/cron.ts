// Made by hack/gen-web-api.ts from the OpenAPI document. Do not edit.
import type { FormField } from '../form-schema.ts';

export const fields: FormField[] = [
  {"name":"name","help":"Name shown to people.","node":{"kind":"text"},"isMain":true,"isRequired":true},
  {"name":"cronExpression","help":"Minute (0-59), hour (0-23), day of month (1-31), month (1-12), day of week (0-6): each `*`, `*/n`, or numbers and ranges with commas.","node":{"kind":"text"},"isMain":true,"isRequired":true},
  {"name":"timezone","help":"IANA time zone, such as Europe/Berlin.","node":{"kind":"text"},"isMain":true,"default":"UTC"},
  {"name":"url","help":"Absolute http or https URL without user and password.","node":{"kind":"text"},"isMain":true,"isRequired":true},
  {"name":"method","help":"Method of the request.","node":{"kind":"choice","values":["GET","HEAD","POST","PUT","PATCH","DELETE"]},"isMain":true,"default":"POST"},
  {"name":"payload","help":"Body of the request, as text.","node":{"kind":"text","isLong":true},"isNullable":true,"isMain":true},
  {"name":"description","help":"What this is for.","node":{"kind":"text"},"isNullable":true,"isMain":true},
  {"name":"isActive","help":"While off, it runs only when it is triggered.","node":{"kind":"boolean"},"isMain":true,"default":true},
  {"name":"slug","help":"Name in addresses and in Kubernetes. Empty: made of the name.","node":{"kind":"text"},"isFixed":true},
  {"name":"headers","help":"Names and values. Secrets that are stored are shown as bullets, which keep them.","node":{"kind":"map"},"isNullable":true},
  {"name":"timeoutMs","help":"One deadline over connect, headers and body, in milliseconds.","node":{"kind":"number"},"default":30000},
  {"name":"useStaticIp","help":"Requests go through the egress proxy of the installation, which has a fixed address. Needs a paid plan.","node":{"kind":"boolean"},"default":false},
];
