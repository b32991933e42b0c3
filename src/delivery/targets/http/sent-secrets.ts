import { isCredentialHeader, isCredentialParameter } from '../../../core/credential-names.ts';
import { maskedUnread } from '../../../core/masking.ts';
import { includesText, replacedTexts, unfinishedLength } from '../../../core/text-search.ts';
import type { HttpTarget } from './http-target.ts';

/** Shorter ones would be found where they are not meant. */
const shortestSecret = 8;
/** A sender chooses how many cookies it sends. Each secret has up to 100 forms. */
const maxSecrets = 150;
/** Maximum characters of all secrets together; characters that encoders escape count four times. */
const maxSecretCharacters = 64 * 1024;
/** Forms × characters up to which each form is searched for separately; at worst 5 ms. */
const maxSeparateWork = 1_000_000;

interface Sent {
  /** Path of the URL, with its query. */
  path: string;
  /** Alternating names and values. */
  headers: readonly string[];
}

/**
 * The credentials that requests to a receiver carry or are made with. The response is stored and shown to those who may not see
 * them, so every occurrence is masked: as it was sent, and as debug pages and error pages write it (JSON, URL encoding, HTML, Base64, hex). A text is masked
 * as a whole if the secrets are too many or too long to search for.
 */
export class SentSecrets {
  static readonly none = new SentSecrets([]);
  readonly #values: ReadonlySet<string>;
  readonly #headerNames: ReadonlySet<string>;
  #forms: readonly string[] | null = null;

  /** Values below 8 characters are left out. `headerNames`: of the headers that carry secrets of any length, in lower case. */
  constructor(values: Iterable<string>, headerNames: Iterable<string> = []) {
    this.#headerNames = new Set(headerNames);
    this.#values = new Set([...values].map((value) => value.trim()).filter(({ length }) => length >= shortestSecret));
  }

  /** The same, and one that is of a single request. */
  and(value: string): SentSecrets {
    return new SentSecrets([...this.#values, value], this.#headerNames);
  }

  /** `isCut`: there was more, so that the text may end within a secret. */
  maskedIn(text: string, { isCut = false, sent }: { isCut?: boolean; sent?: Sent } = {}): string {
    if (text.length < shortestSecret) return text;
    const more = new Set(sent === undefined ? [] : secretsIn(sent).filter((value) => !this.#values.has(value)));
    if (areTooMany([...this.#values, ...more])) return maskedUnread;
    this.#forms ??= formsOf(this.#values);
    const forms = more.size === 0 ? this.#forms : longestFirst([...this.#forms, ...formsOf(more)]);
    const result = withoutForms(text, forms);
    if (result === null) return maskedUnread;
    return isCut ? withoutBeginning(result, forms) : result;
  }

  /**
   * Headers as they may be stored, at most about `maxBytes` of them. A value is masked as a whole if the name denotes a credential, or where a
   * Secret has it; in the others every secret is.
   */
  maskedHeaders(headers: readonly (readonly [string, string])[], { sent, maxBytes }: { sent: Sent; maxBytes: number }): MaskedHeaders {
    const lines: string[] = [];
    let bytes = 0;
    let isCut = false;
    for (const [name, value] of headers) {
      const isSecret = value !== '' && (isCredentialHeader(name) || this.#headerNames.has(name.toLowerCase()));
      const line = `${name.toLowerCase()}: ${isSecret ? maskedUnread : withoutUrlCredentials(value)}`;
      isCut = bytes + line.length > maxBytes;
      lines.push(isCut ? line.slice(0, maxBytes - bytes) : line);
      bytes += line.length;
      if (isCut) break;
    }
    const shown = this.maskedIn(lines.join('\n'), { isCut, sent }).split('\n');
    if (shown.length !== lines.length)
      return { headers: headers.slice(0, lines.length).map(([name]) => [name.toLowerCase(), maskedUnread]), isCut };
    return {
      headers: shown.flatMap((line): [string, string][] => {
        const end = line.indexOf(': ');
        return end < 1 ? [] : [[line.slice(0, end), line.slice(end + 2)]];
      }),
      isCut,
    };
  }
}

export interface MaskedHeaders {
  /** Names in lower case. */
  headers: [string, string][];
  /** There were more, or the last one is longer. */
  isCut: boolean;
}

/** A value of a header without the credentials of the URLs in it: those of their queries, and before the host. */
function withoutUrlCredentials(value: string): string {
  return value
    .replace(/([?&;#])([^?&;=#\s]{1,200})=([^&;#\s"'>,]+)/g, (whole, before: string, name: string) =>
      isCredentialParameter(name) ? `${before}${name}=${maskedUnread}` : whole,
    )
    .replace(/:\/\/[^/\s@]{1,500}@/g, `://${maskedUnread}@`);
}

/** The credentials in a header: its value, what follows the scheme, user and password of Basic, and the values of cookies. */
export function secretsInHeader(name: string, value: string): string[] {
  const [, scheme = '', credentials = ''] = /^(\S+) +(.+)$/.exec(value) ?? [];
  const found = [value, credentials];
  if (scheme.toLowerCase() === 'basic') {
    const pair = Buffer.from(credentials, 'base64').toString();
    found.push(pair, pair.slice(pair.indexOf(':') + 1));
  }
  if (name.endsWith('cookie')) found.push(...value.split(/; */).map((each) => each.slice(each.indexOf('=') + 1)));
  return found;
}

/** The credentials in the query of a URL, decoded and as they are written. */
export function secretsInQuery(query: string): string[] {
  return parametersOf(query).flatMap(({ name, values }) => (isCredentialParameter(name) ? values : []));
}

/** All of a URL that is a credential as a whole, such as that of an incoming webhook; also its parts. */
export function secretsInSecretUrl(url: string, { origin, path, query }: Pick<HttpTarget, 'origin' | 'path' | 'query'>): string[] {
  const segments = path.slice(0, path.length - query.length).split('/');
  return [url, origin + path, path, ...segments, ...parametersOf(query).flatMap(({ values }) => values)];
}

/** `values`: what the parameter is when it is decoded, and as it is written. */
function parametersOf(query: string): { name: string; values: string[] }[] {
  return query
    .slice(1)
    .split('&')
    .flatMap((written) =>
      [...new URLSearchParams(written)].map(([name, value]) => ({ name, values: [value, written.slice(written.indexOf('=') + 1)] })),
    );
}

function secretsIn({ path, headers }: Sent): string[] {
  const found: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const [name = '', value = ''] = [headers[i], headers[i + 1]];
    if (isCredentialHeader(name)) found.push(...secretsInHeader(name, value));
  }
  const query = path.indexOf('?');
  if (query >= 0) found.push(...secretsInQuery(path.slice(query)));
  return found.filter(({ length }) => length >= shortestSecret);
}

function areTooMany(secrets: readonly string[]): boolean {
  const characters = secrets.reduce((sum, secret) => sum + secret.length * (isNeverEscaped(secret) ? 1 : 4), 0);
  return secrets.length > maxSecrets || characters > maxSecretCharacters;
}

/** Masks the forms of the secrets in a text; null: it would take too long. `forms`: the longest first. */
function withoutForms(text: string, forms: readonly string[]): string | null {
  if (forms.length * text.length > maxSeparateWork) return replacedTexts(text, forms, maskedUnread, shortestSecret);
  let result = text;
  for (const form of forms) if (includesText(result, form)) result = result.replaceAll(form, maskedUnread);
  return result;
}

function formsOf(values: ReadonlySet<string>): string[] {
  return longestFirst([...values].flatMap(formsOfOne));
}

/** A form may contain another one; masking the inner one would leave the rest. */
function longestFirst(forms: readonly string[]): string[] {
  return [...new Set(forms)].filter(({ length }) => length >= shortestSecret).sort((a, b) => b.length - a.length);
}

function formsOfOne(value: string): string[] {
  const bytes = Buffer.from(value);
  const base64 = base64Forms(bytes);
  const hex = bytes.toString('hex');
  return [...textForms(value), ...base64.flatMap(textForms), hex, hex.toUpperCase()];
}

/** The text as encoders write it into JSON, URLs and HTML; those differ in what they escape. */
function textForms(text: string): string[] {
  if (isNeverEscaped(text)) return [text];
  const json = JSON.stringify(text).slice(1, -1);
  const ascii = escaped(json, /[\u0080-\uffff]/g);
  const slashed = ascii.replaceAll('/', '\\/');
  const jsons = [json, ascii, json.replaceAll('/', '\\/'), slashed, escaped(json, /[<>&]/g), escaped(ascii, /[<>&='+/]/g)];
  const url = encodeURIComponent(text);
  const strict = url.replace(/[!'()*]/g, (character) => `%${hexOf(character, 2).toUpperCase()}`);
  const urls = [url, strict, url.replaceAll('%2F', '/'), strict.replaceAll('%20', '+'), encodeURI(text)];
  const html = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const quoted = html.replaceAll('"', '&quot;');
  const htmls = [html, quoted, quoted.replaceAll("'", '&#39;'), quoted.replaceAll("'", '&#x27;'), quoted.replaceAll("'", '&#039;')];
  const decimal = html.replaceAll('"', '&#34;').replaceAll("'", '&#39;').replaceAll('+', '&#43;');
  const lowerUrls = urls.map((each) => each.replace(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase()));
  const twice = jsons.map((each) => JSON.stringify(each).slice(1, -1));
  return [text, ...jsons, ...twice, ...urls, ...lowerUrls, ...htmls, decimal];
}

function isNeverEscaped(text: string): boolean {
  return /^[A-Za-z0-9_.-]*$/.test(text);
}

function escaped(text: string, characters: RegExp): string {
  return text.replace(characters, (character) => `\\u${hexOf(character, 4)}`);
}

function hexOf(character: string, digits: number): string {
  return character.charCodeAt(0).toString(16).padStart(digits, '0');
}

/** Base64 of the value, and what is the same in Base64 of any text that contains it: its middle, at each of three offsets. */
function base64Forms(bytes: Buffer): string[] {
  const whole = bytes.toString('base64');
  const middles = [0, 1, 2].map((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
    return text.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
  });
  const all = [whole, whole.replace(/=+$/, ''), ...middles];
  return [...all, ...all.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'))];
}

/** The text less the longest beginning of one of the forms with which it ends. */
function withoutBeginning(text: string, forms: readonly string[]): string {
  const longest = forms.reduce((length, form) => Math.max(length, unfinishedLength(text, form)), 0);
  return longest === 0 ? text : text.slice(0, -longest) + maskedUnread;
}
