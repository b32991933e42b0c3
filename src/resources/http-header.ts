import { z } from 'zod';
import type { Rule } from './definition.ts';
import { secretKeyRef } from './fields.ts';
import { text } from './text.ts';

/** Headers that the program or the connection sets itself, and `sec-`, by which a browser says who has it send a request: no configuration may send them. */
const refusedNames: readonly string[] = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'keep-alive',
  'expect',
  'accept-encoding',
];
const refusedPrefixes: readonly string[] = ['proxy-', 'sec-', 'webhook-', 'x-posthorn-'];

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

/** What holds for the headers at `at` that `staticHeaders` describes. */
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
  return !refusedNames.includes(lower) && !refusedPrefixes.some((prefix) => lower.startsWith(prefix));
}

/** The rule that a list of headers at `at` has each name once, whatever its case. */
export function distinctHeadersRule(at: string): Rule {
  return {
    at,
    cel: 'self.all(one, self.exists_one(other, other.name.lowerAscii() == one.name.lowerAscii()))',
    message: 'must name each header once; upper and lower case do not differ',
    check: (self: readonly { name: string }[]) => new Set(self.map(({ name }) => name.toLowerCase())).size === self.length,
  };
}

/** The rule that the header name at `at` is one that configuration may set. */
export function settableHeaderRule(at: string): Rule {
  const names = refusedNames.map((name) => `'${name}'`).join(', ');
  const prefixes = refusedPrefixes.map((prefix) => `self.lowerAscii().startsWith('${prefix}')`).join(' || ');
  return {
    at,
    cel: `!(self.lowerAscii() in [${names}] || ${prefixes})`,
    sparesStored: true,
    message: `is set by Posthorn, the connection or browsers alone: not ${refusedNames.join(', ')}, nor any ${refusedPrefixes.map((prefix) => `${prefix}*`).join(', ')}`,
    check: isSettableHeader,
  };
}
