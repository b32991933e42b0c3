import { isSentCredentialParameter } from './credential-names.ts';

/** Characters of the query of a request to a source, as `queryOf` gives it. */
export const maxQueryLength = 8192;

/** Parameters by name, decoded; one that came several times has all its values, in their order. */
export type QueryParameters = Record<string, string | string[]>;

const beyondAscii = /[\u0080-\u00ff]/g;

/**
 * The query of a request target, without the question mark and a fragment; empty: there is none. It is unchanged, but for bytes beyond ASCII, which
 * HTTP does not have in a target, are percent-encoded. `target`: as node:http has it, a character for each byte.
 */
export function queryOf(target: string): string {
  const start = target.search(/[?#]/);
  if (start < 0 || target[start] === '#') return '';
  const end = target.indexOf('#', start);
  return target.slice(start + 1, end < 0 ? undefined : end).replace(beyondAscii, percentEncoded);
}

/** A name or value with an escape of no character, or of no UTF-8, stays as it was sent. */
export function queryParameters(query: string): QueryParameters {
  const parameters = new Map<string, string | string[]>();
  for (const part of query.split('&')) {
    if (part === '') continue;
    const at = part.indexOf('=');
    const name = decoded(at < 0 ? part : part.slice(0, at));
    const value = at < 0 ? '' : decoded(part.slice(at + 1));
    const before = parameters.get(name);
    if (before === undefined) parameters.set(name, value);
    else if (typeof before === 'string') parameters.set(name, [before, value]);
    else before.push(value);
  }
  return Object.fromEntries(parameters);
}

/** The first value of a parameter; undefined: there is none. */
export function queryParameter(parameters: QueryParameters, name: string): string | undefined {
  const value = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
  return Array.isArray(value) ? value[0] : value;
}

/** The query as it is stored, shown and forwarded: without credentials, which are meant for this installation. The other parameters stay byte for byte. */
export function keptQuery(query: string): string {
  if (query === '') return '';
  const parts = query.split('&');
  const kept = parts.filter((part) => !part.split(';').some(namesCredential));
  return kept.length === parts.length ? query : kept.join('&');
}

/** Some senders separate parameters by semicolons. */
function namesCredential(part: string): boolean {
  return part !== '' && isSentCredentialParameter(decoded(part.split('=', 1)[0] ?? ''));
}

/** A request target in origin form with a further query. */
export function withQuery(path: string, query: string): string {
  if (query === '') return path;
  if (!path.includes('?')) return `${path}?${query}`;
  return /[?&]$/.test(path) ? path + query : `${path}&${query}`;
}

function decoded(text: string): string {
  if (!text.includes('%')) return text.replaceAll('+', ' ');
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}

function percentEncoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}
