import { z } from 'zod';
import { type TemplateKind, templateLimits, templatePattern, templateRule } from '../core/header-template.ts';
import type { Rule } from './definition.ts';
import { notCredentialRule } from './forwarded-header.ts';
import { distinctHeadersRule, headerName, settableHeaderRule } from './http-header.ts';
import { text } from './text.ts';

/** At most so many headers whose values are made of the message. */
export function headerTemplates(max: number, kind: TemplateKind) {
  const header = z.strictObject({
    name: headerName.describe('Name of the header.'),
    template: text(1, templateLimits.length)
      .regex(new RegExp(templatePattern(kind)), templateRule(kind))
      .describe(
        `Value of the header, with at most ${templateLimits.placeholders} placeholders such as {{ event.id }} or {{ payload.order.id }}.`,
      ),
  });
  return z
    .array(header)
    .max(max)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] });
}

interface Named {
  name: string;
}
interface Owner {
  headers?: readonly Named[];
  headerTemplates?: readonly Named[];
}

const list = 'headerTemplates';

/** Rules for a list of `headerTemplates`. `at`: path of the object that has the list and `headers`. */
export function headerTemplateRules(at: string): Rule[] {
  const path = at === '' ? list : `${at}.${list}`;
  return [
    settableHeaderRule(`${path}[].name`),
    notCredentialRule(`${path}[].name`, 'must not name a credential: what is one belongs in headers, whose values are kept secret'),
    {
      at: `${path}[].template`,
      cel: `self.split('{{').size() <= ${templateLimits.placeholders + 1}`,
      message: `must have at most ${templateLimits.placeholders} placeholders`,
      check: (self: string) => self.split('{{').length <= templateLimits.placeholders + 1,
    },
    distinctHeadersRule(path),
    {
      at,
      cel: `!has(self.headers) || !has(self.${list}) || !self.${list}.exists(one, self.headers.exists(other, other.name.lowerAscii() == one.name.lowerAscii()))`,
      message: 'must not name a header that headers has, too',
      fieldPath: `.${list}`,
      check: ({ headers = [], headerTemplates: templates = [] }: Owner) => {
        const names = new Set(headers.map(({ name }) => name.toLowerCase()));
        return !templates.some(({ name }) => names.has(name.toLowerCase()));
      },
    },
  ];
}
