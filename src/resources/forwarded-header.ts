import { z } from 'zod';
import { credentialEndings, credentialWords, harmlessOwners, isCredentialHeader } from '../core/credential-names.ts';
import { asReceiversRead } from '../core/kept-headers.ts';
import { connectionHeaders, payloadHeaders, reservedPrefixes, signatureHeaders } from '../core/reserved-headers.ts';
import type { Rule } from './definition.ts';
import { distinctHeadersRule, isReserved, notAny } from './http-header.ts';
import { text } from './text.ts';

/** Names of headers of an event that a destination sends on. */
export const forwardedHeaderNames = z
  .array(text(1, 128).regex(/^[A-Za-z0-9_.-]+$/, 'must be the name of a header: letters, digits, -, _ and .'))
  .max(50)
  .meta({ 'x-kubernetes-list-type': 'set' });

/** Headers of the connection or of Posthorn, and headers always sent with the payload because they define how to read it. */
const refusedNames: readonly string[] = [...connectionHeaders, 'http2-settings', 'user-agent', ...payloadHeaders];

const asRead = "self.lowerAscii().replace('_', '-').replace('.', '-')";
const isHarmless = [
  "self.matches('(?i)(^|[^a-z0-9])signature[^a-z0-9]+jwt$')",
  `self.matches('(?i)(^|[^a-z0-9])(${harmlessOwners.join('|')})[^a-z0-9]*(key|token)$')`,
];
const isCredential = [
  `self.lowerAscii().replace('-', '').replace('_', '').replace('.', '').matches('(${credentialEndings.join('|')})$')`,
  `self.matches('(?i)(^|[^a-z0-9])(${[...credentialWords].join('|')})$')`,
];

const at = 'http.forwardHeaders';

/** The rule that the name of a header at `where` is not that of a credential. */
export function notCredentialRule(where: string, message: string): Rule {
  return {
    at: where,
    cel: `${isHarmless.join(' || ')} || !(${isCredential.join(' || ')})`,
    message,
    sparesStored: true,
    check: (self: string) => !isCredentialHeader(self.toLowerCase()),
  };
}

/** Rules of the list of a destination, which `forwardedHeaderNames` describes. */
export const forwardedHeaderRules: readonly Rule[] = [
  {
    at: `${at}[]`,
    cel: `!(${isReserved(asRead, refusedNames, reservedPrefixes)})`,
    message: `must be none that the connection or Posthorn sets, or that always goes out with the payload: ${notAny(refusedNames, reservedPrefixes)}`,
    check: (self: string) => {
      const name = asReceiversRead(self.toLowerCase());
      return !refusedNames.includes(name) && !reservedPrefixes.some((prefix) => name.startsWith(prefix));
    },
  },
  notCredentialRule(
    `${at}[]`,
    'must not name a credential: those of the sender are neither stored nor forwarded, and the receiver gets its own from the destination',
  ),
  distinctHeadersRule(at, ''),
  {
    at: 'http',
    cel: `!has(self.signingSecretRef) || !has(self.forwardHeaders) || !self.forwardHeaders.exists(name, ${isReserved('name.lowerAscii()', [...signatureHeaders], [])})`,
    message: `must not have ${[...signatureHeaders].join(', ')} beside signingSecretRef: they are those of the signature`,
    fieldPath: '.forwardHeaders',
    check: ({ signingSecretRef, forwardHeaders = [] }: { signingSecretRef?: unknown; forwardHeaders?: readonly string[] }) =>
      signingSecretRef === undefined || !forwardHeaders.some((name) => signatureHeaders.has(name.toLowerCase())),
  },
];
