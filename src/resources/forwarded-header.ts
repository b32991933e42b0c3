import { z } from 'zod';
import { credentialEndings, credentialWords, harmlessOwners, isCredentialHeader } from '../core/credential-names.ts';
import { asReceiversRead } from '../core/kept-headers.ts';
import type { Rule } from './definition.ts';
import { text } from './text.ts';

/** Names of headers of an event that a destination sends on. */
export const forwardedHeaderNames = z
  .array(text(1, 128).regex(/^[A-Za-z0-9_.-]+$/, 'must be the name of a header: letters, digits, -, _ and .'))
  .max(50)
  .meta({ 'x-kubernetes-list-type': 'set' });

/** What the connection or Posthorn sets itself, and what always goes out with the payload because it says how to read that. */
const refusedNames: readonly string[] = [
  ...['host', 'connection', 'content-length', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'keep-alive', 'expect', 'http2-settings'],
  ...['accept-encoding', 'user-agent', 'content-type', 'content-encoding'],
];
const refusedPrefixes: readonly string[] = ['proxy-', 'sec-', 'x-posthorn-'];
/** Headers of Standard Webhooks. A destination that signs sets them itself. */
const signatureHeaders: readonly string[] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];

const quoted = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ');
const asRead = "self.lowerAscii().replace('_', '-').replace('.', '-')";
const isHarmless = [
  "self.matches('(?i)(^|[^a-z0-9])signature[^a-z0-9]+jwt$')",
  `self.matches('(?i)(^|[^a-z0-9])(${harmlessOwners.join('|')})[^a-z0-9]*(key|token)$')`,
];
const isCredential = [
  `self.lowerAscii().replace('-', '').replace('_', '').replace('.', '').matches('(${credentialEndings.join('|')})$')`,
  `self.matches('(?i)(^|[^a-z0-9])(${[...credentialWords].join('|')})$')`,
];

/** What holds for the names at `at`, in the settings at `of`, that `forwardedHeaderNames` describes. */
export function forwardedHeaderRules(of: string, field: string): Rule[] {
  const at = `${of}.${field}`;
  return [
    {
      at: `${at}[]`,
      cel: `!(${asRead} in [${quoted(refusedNames)}] || ${refusedPrefixes.map((prefix) => `${asRead}.startsWith('${prefix}')`).join(' || ')})`,
      message: `must be none that the connection or Posthorn sets, or that always goes out with the payload: not ${refusedNames.join(', ')}, nor any ${refusedPrefixes.map((prefix) => `${prefix}*`).join(', ')}`,
      check: (self: string) => {
        const name = asReceiversRead(self.toLowerCase());
        return !refusedNames.includes(name) && !refusedPrefixes.some((prefix) => name.startsWith(prefix));
      },
    },
    {
      at: `${at}[]`,
      cel: `${isHarmless.join(' || ')} || !(${isCredential.join(' || ')})`,
      message:
        'must not name a credential: those of the sender are neither stored nor forwarded, and the receiver gets its own from the destination',
      sparesStored: true,
      check: (self: string) => !isCredentialHeader(self.toLowerCase()),
    },
    {
      at,
      cel: 'self.all(one, self.exists_one(other, other.lowerAscii() == one.lowerAscii()))',
      message: 'must name each header once; upper and lower case do not differ',
      check: (self: readonly string[]) => new Set(self.map((name) => name.toLowerCase())).size === self.length,
    },
    {
      at: of,
      cel: `!has(self.signingSecretRef) || !has(self.${field}) || !self.${field}.exists(name, name.lowerAscii() in [${quoted(signatureHeaders)}])`,
      message: `must not have ${signatureHeaders.join(', ')} beside signingSecretRef: they are those of the signature`,
      fieldPath: `.${field}`,
      check: (self: { signingSecretRef?: unknown } & Record<string, unknown>) => {
        const names = self[field];
        return (
          self.signingSecretRef === undefined ||
          !Array.isArray(names) ||
          !names.some((name: unknown) => signatureHeaders.includes(String(name).toLowerCase()))
        );
      },
    },
  ];
}
