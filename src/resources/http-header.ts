import { z } from 'zod';
import { connectionHeaders, reservedPrefixes } from '../core/reserved-headers.ts';
import type { Rule } from './definition.ts';
import { secretKeyRef } from './fields.ts';
import { text } from './text.ts';

/** No configuration may send these. */
const refusedPrefixes: readonly string[] = [...reservedPrefixes, 'webhook-'].sort();

/** Header name: an RFC 9110 token. */
export const headerName = text(1, 128).regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'must be a header name: letters, digits and -');

/** Class of a regular expression: what Node sends in the value of a header without complaint, that is Latin-1 without control characters. */
export const sendableCharacter = String.raw`[\t\x20-\x7e\x80-\xff]`;
export const sendableRule = 'must have no control characters and none beyond Latin-1';
const sendable = new RegExp(`^${sendableCharacter}*$`);

export const headerValue = text(0, 4096).regex(sendable, sendableRule);

/** At most so many headers that configuration adds to every request, each with its value or the Secret that holds it. */
export function staticHeaders(most: number) {
  const header = z.strictObject({
    name: headerName.describe('Name of the header.'),
    value: headerValue
      .optional()
      .describe('Value of the header. Everybody who reads the resource sees it: credentials belong behind valueSecretRef.'),
    valueSecretRef: secretKeyRef.optional().describe('Value of the header from a Secret, instead of value.'),
  });
  return z
    .array(header)
    .max(most)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] });
}

/** Rules of the headers at `at` that `staticHeaders` describes. */
export function staticHeaderRules(at: string): Rule[] {
  return [
    {
      at: `${at}[]`,
      cel: 'has(self.value) != has(self.valueSecretRef)',
      message: 'give either value or valueSecretRef',
      fieldPath: '.value',
      check: (self: { value?: unknown; valueSecretRef?: unknown }) => (self.value === undefined) !== (self.valueSecretRef === undefined),
    },
    settableHeaderRule(`${at}[].name`),
    distinctHeadersRule(at),
  ];
}

/** Whether a header can carry the value, whatever its length. */
export function isSendable(value: string): boolean {
  return sendable.test(value);
}

/** Whether configuration may set the header, whatever its case. */
export function isSettableHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return !connectionHeaders.includes(lower) && !refusedPrefixes.some((prefix) => lower.startsWith(prefix));
}

/** The rule that a list at `at` has each name of a header once, whatever its case: `of` is the path of the name in an item; empty: it is the name. */
export function distinctHeadersRule(at: string, of: '.name' | '' = '.name'): Rule {
  const nameOf = (item: string | { name: string }): string => (typeof item === 'string' ? item : item.name);
  return {
    at,
    cel: `self.all(one, self.exists_one(other, other${of}.lowerAscii() == one${of}.lowerAscii()))`,
    message: 'must name each header once; upper and lower case do not differ',
    check: (self: readonly (string | { name: string })[]) => new Set(self.map((item) => nameOf(item).toLowerCase())).size === self.length,
  };
}

/** The rule that the header name at `at` is one that configuration may set. */
export function settableHeaderRule(at: string): Rule {
  return {
    at,
    cel: `!(${isReserved('self.lowerAscii()', connectionHeaders, refusedPrefixes)})`,
    sparesStored: true,
    message: `is set by Posthorn, the connection or browsers alone: ${notAny(connectionHeaders, refusedPrefixes)}`,
    check: isSettableHeader,
  };
}

/** CEL: whether `name`, an expression, is one of the names or begins with one of the prefixes. */
export function isReserved(name: string, names: readonly string[], prefixes: readonly string[]): string {
  const quoted = names.map((each) => `'${each}'`).join(', ');
  return [`${name} in [${quoted}]`, ...prefixes.map((prefix) => `${name}.startsWith('${prefix}')`)].join(' || ');
}

/** Describes invalid names. */
export function notAny(names: readonly string[], prefixes: readonly string[]): string {
  return `not ${names.join(', ')}, nor any ${prefixes.map((prefix) => `${prefix}*`).join(', ')}`;
}
