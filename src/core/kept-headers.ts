import { isCredentialHeader } from './credential-names.ts';
import { ofKnownNames } from './known-names.ts';
import { isTrustedHeader } from './trusted-headers.ts';

const plain = /^[a-z0-9-]*$/;
const separators = /[^a-z0-9]/g;

/**
 * Whether a header of a sender with this name is stored, shown and forwarded: it carries no credential, and receivers do not believe it of a proxy. Any case.
 * `_` and `.` count as `-`.
 */
export const isKeptHeader = ofKnownNames((rawName) => {
  const name = asReceiversRead(rawName.toLowerCase());
  return !isTrustedHeader(name) && !isCredentialHeader(name);
});

/** The headers of a stored event, less those that are not kept, which another release may have stored; the same array where all are. */
export function keptHeaders(headers: [name: string, value: string][]): [name: string, value: string][] {
  return headers.every(([name]) => isKeptHeader(name)) ? headers : headers.filter(([name]) => isKeptHeader(name));
}

/** The name with `-` for each other separator: CGI, WSGI and PHP do not distinguish `-`, `_` and `.`, so that `x_forwarded_user` is trusted as well. */
export function asReceiversRead(name: string): string {
  return plain.test(name) ? name : name.replaceAll(separators, '-');
}
