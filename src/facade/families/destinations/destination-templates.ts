import { z } from 'zod';
import { isCredentialHeader } from '../../../core/credential-names.ts';
import { isForwardedHeader } from '../../../core/forwarded-headers.ts';
import { headersIn } from '../../../core/header-template.ts';
import { kinds, type PosthornObject } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { textOf } from '../../records/spec-field.ts';
import { headerMap } from '../shared/header-map.ts';
import { templateText } from '../shared/template-text.ts';

type Stored = NonNullable<PosthornObject<'Destination'>['spec']['http']>['headerTemplates'];

const field = kinds.Destination.spec.shape.http.unwrap().shape.headerTemplates;
const description = `${textOf(field)} Names of headers, and templates with placeholders such as {{ event.id }} or {{ payload.order.id }}.`;

export const templatesRecord = z.record(z.string(), z.string()).optional().describe(description);

const credentialIn = (templates: unknown): string | undefined =>
  Object.keys(Object(templates)).find((name) => isCredentialHeader(name.toLowerCase()));

export const templatesBody = headerMap(templateText('destination'), 50)
  .refine((templates) => credentialIn(templates) === undefined, {
    error: ({ input }) => `must not have ${JSON.stringify(credentialIn(input))}, a credential: that belongs in headers or authConfig`,
  })
  .nullable()
  .optional()
  .describe(`${description} On change it replaces the whole map.`);

export function templatesToRecord(stored: Stored): Record<string, string> {
  return Object.fromEntries((stored ?? []).map(({ name, template }) => [name, template]));
}

/** `spec.http.headerTemplates`; undefined: none. Warns of headers that no event has. */
export function templatesToSpec(call: Call, sent: Readonly<Record<string, string>> | null | undefined, stored: Stored): Stored {
  if (sent === undefined) return stored;
  const templates = Object.entries(sent ?? {}).map(([name, template]) => ({ name, template }));
  const unstored = templates.flatMap(({ template }) => headersIn(template)).filter((name) => !isForwardedHeader(name));
  if (unstored.length > 0)
    call.warn(`headerTemplates: ${[...new Set(unstored)].join(', ')} of a sender is not kept with its event, so it has no value`);
  return templates.length === 0 ? undefined : templates;
}
