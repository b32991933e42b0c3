import { isCredentialHeader } from './credential-names.ts';
import { ExactNumber } from './exact-number.ts';
import { type FieldReader, type FilterContext, fieldReader } from './filter-path.ts';
import { joinedHeaders } from './joined-headers.ts';
import { payloadText } from './payload-text.ts';
import { readJson } from './read-json.ts';
import { readablePayload, storedFormat } from './readable-payload.ts';
import { signatureHeaders } from './reserved-headers.ts';

/** A header whose value is computed for every attempt: text with placeholders such as `{{ payload.order.id }}`. */
export interface HeaderTemplate {
  name: string;
  template: string;
}

export const templateLimits = {
  /** Characters of a template. */
  length: 1024,
  placeholders: 10,
  /** Characters of a value. A longer one is not sent. */
  valueLength: 4096,
  /** Characters of the names and values of all of them in a request. Those behind are not sent. */
  totalLength: 8192,
  /** Bytes of a payload that is read, also once it is decompressed. */
  payloadBytes: 262_144,
};

/** Which paths there are depends on what the headers are sent to. */
export type TemplateKind = 'destination' | 'endpoint';

const fixedPaths = {
  destination: ['event.id', 'message.id', 'attempt', 'timestamp', 'source', 'route', 'destination'],
  endpoint: ['event.id', 'event.type', 'message.id', 'attempt', 'timestamp', 'application', 'endpoint'],
} as const;

// Read alike by RE2 and JavaScript: the CRD has them, too. Every path is one that `fieldReader` takes.
const member = String.raw`\.[A-Za-z0-9_$@:/-]+`;
const index = String.raw`\[(0|-?[1-9][0-9]{0,8})\]`;
const quoted = String.raw`\['[\x20-\x26\x28-\x5b\x5d-\x7a\x7c\x7e]+'\]|\["[\x20\x21\x23-\x5b\x5d-\x7a\x7c\x7e]+"\]`;
const payloadPath = `payload(${member}|${index}|${quoted})*`;
const headerPath = String.raw`headers\.[A-Za-z0-9_.-]+`;

function pathPattern(kind: TemplateKind): string {
  const fixed = fixedPaths[kind].map((path) => path.replace('.', String.raw`\.`));
  return [...fixed, ...(kind === 'destination' ? [headerPath] : []), payloadPath].join('|');
}

/** Text of the pattern of a template: printable ASCII in which every `{{` begins a placeholder that ends and has a known path. */
export function templatePattern(kind: TemplateKind): string {
  return String.raw`^([\x20-\x7a\x7c-\x7e]|\{[\x20-\x7a\x7c-\x7e]|\{\{ *(${pathPattern(kind)}) *\}\})*\{?$`;
}

/** The rule of `templatePattern`, in words. */
export function templateRule(kind: TemplateKind): string {
  return `must be printable ASCII in which each {{ is closed by }} around one of ${pathsInWords(kind)}`;
}

function pathsInWords(kind: TemplateKind): string {
  return [...fixedPaths[kind], ...(kind === 'destination' ? ['headers.<name>'] : []), 'payload.<path>'].join(', ');
}

const placeholder = /\{\{([^{}]*)\}\}/g;
const patterns = { destination: new RegExp(templatePattern('destination')), endpoint: new RegExp(templatePattern('endpoint')) };
const paths = { destination: new RegExp(`^(${pathPattern('destination')})$`), endpoint: new RegExp(`^(${pathPattern('endpoint')})$`) };

/** Returns the complaint about a template; null: there is none. */
export function templateProblem(template: string, kind: TemplateKind): string | null {
  if (template.length > templateLimits.length) return `must be at most ${templateLimits.length} characters long`;
  const found = placeholdersOf(template);
  if (!patterns[kind].test(template)) {
    if (/[^\x20-\x7e]/.test(template)) return 'must be printable ASCII';
    const unknown = found.find((path) => !paths[kind].test(path));
    if (unknown !== undefined) return `has the unknown path ${JSON.stringify(unknown)}: known are ${pathsInWords(kind)}`;
    return 'has a placeholder that is not closed: each {{ needs a path and }}';
  }
  if (found.length > templateLimits.placeholders) return `must have at most ${templateLimits.placeholders} placeholders`;
  return forbiddenHeaderIn(template);
}

/** Returns the complaint about a header of the event that a template must not take, which no pattern of RE2 finds; null: there is none. */
export function forbiddenHeaderIn(template: string): string | null {
  const forbidden = headersIn(template).find((name) => isCredentialHeader(name) || signatureHeaders.has(name));
  return forbidden === undefined
    ? null
    : `must not take the header ${forbidden} of the event: it is a credential, or proves what Posthorn got`;
}

/** Returns the names of the headers of an event that a template takes, in lower case. */
export function headersIn(template: string): string[] {
  return placeholdersOf(template).flatMap((path) => (path.startsWith('headers.') ? [path.slice('headers.'.length).toLowerCase()] : []));
}

function placeholdersOf(template: string): string[] {
  return [...template.matchAll(placeholder)].map(([, path = '']) => path.trim());
}

/** Values of placeholders in one attempt. */
export interface TemplatedMessage {
  eventId: string;
  messageId: string;
  /** From 1. */
  attempt: number;
  /** Slug of the source; the type of an event that was sent to endpoints. */
  source: string;
  receivedAtMs: number;
  contentType: string;
  /** Names in lower case. */
  headers: readonly (readonly [string, string])[];
  /** As it is sent. */
  payload: Buffer;
}

/** Values shared by all messages of a target. */
export type TargetPaths = Partial<Record<'route' | 'destination' | 'application' | 'endpoint', string>>;

type Part = string | ((message: TemplatedMessage, context: FilterContext) => unknown);

/** A header with its template taken apart. */
export interface ReadyTemplate {
  /** In lower case. */
  name: string;
  parts: readonly Part[];
}

const readers: Readonly<Record<string, (message: TemplatedMessage) => string>> = {
  'event.id': ({ eventId }) => eventId,
  'event.type': ({ source }) => source,
  'message.id': ({ messageId }) => messageId,
  attempt: ({ attempt }) => String(attempt),
  timestamp: ({ receivedAtMs }) => new Date(receivedAtMs).toISOString(),
  source: ({ source }) => source,
};

/** Parses templates, once for all attempts. Paths that this release does not support are empty. */
export function readyTemplates(templates: readonly HeaderTemplate[], target: TargetPaths): ReadyTemplate[] {
  return templates.map(({ name, template }) => {
    const parts: Part[] = [];
    let end = 0;
    for (const match of template.matchAll(placeholder)) {
      parts.push(template.slice(end, match.index), readerOf(match[1]?.trim() ?? '', target));
      end = match.index + match[0].length;
    }
    return { name: name.toLowerCase(), parts: [...parts, template.slice(end)].filter((part) => part !== '') };
  });
}

function readerOf(path: string, target: TargetPaths): Part {
  if (Object.hasOwn(target, path)) return encoded(target[path as keyof TargetPaths] ?? '');
  const fixed = Object.hasOwn(readers, path) ? readers[path] : undefined;
  if (fixed !== undefined) return fixed;
  const read: FieldReader | string = /^(?:headers\.|payload(?:$|[.[]))/.test(path) ? fieldReader(path) : '';
  return typeof read === 'string' ? '' : (_, context) => read(context);
}

/**
 * Returns the headers of one attempt. Every value is printable ASCII without spaces at its ends: a placeholder's value is percent-encoded where it has other
 * characters or `%`. Strings, numbers and booleans have a text; null, objects, lists and what is not there have none. A header whose value is empty or too long is left out. The payload is read at most once.
 */
export function templatedHeaders(templates: readonly ReadyTemplate[], message: TemplatedMessage): [string, string][] {
  const context = new MessageContext(message);
  const result: [string, string][] = [];
  let total = 0;
  for (const { name, parts } of templates) {
    const value = textOfParts(parts, message, context);
    total += value === '' ? 0 : name.length + value.length;
    if (total > templateLimits.totalLength) break;
    if (value !== '') result.push([name, value]);
  }
  return result;
}

/** Empty for one that is too long. */
function textOfParts(parts: readonly Part[], message: TemplatedMessage, context: FilterContext): string {
  let value = '';
  for (const part of parts) {
    const text = typeof part === 'string' ? part : textOf(part(message, context));
    // Before it is encoded, which makes it no shorter.
    if (text.length > templateLimits.valueLength) return '';
    value += typeof part === 'string' ? text : encoded(text);
    if (value.length > templateLimits.valueLength) return '';
  }
  return value.trim();
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' || value instanceof ExactNumber ? String(value) : '';
}

/** Printable ASCII that `decodeURIComponent` takes back to the text. */
function encoded(text: string): string {
  return text.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]/gu, encodeURIComponent);
}

/** The payload as filters read it, and the headers; each is read when a placeholder first needs it. */
class MessageContext implements FilterContext {
  readonly query = {};
  readonly #message: TemplatedMessage;
  #headers: FilterContext['headers'] | undefined;
  #payload: { value: unknown } | undefined;

  constructor(message: TemplatedMessage) {
    this.#message = message;
  }

  get headers(): FilterContext['headers'] {
    this.#headers ??= joinedHeaders(this.#message.headers);
    return this.#headers;
  }

  get payload(): unknown {
    this.#payload ??= { value: readPayload(this.#message) };
    return this.#payload.value;
  }
}

/** Undefined for one that is no JSON and no form, or is too large. */
function readPayload({ payload, contentType, headers }: TemplatedMessage): unknown {
  if (payload.length > templateLimits.payloadBytes) return undefined;
  const { bytes } = readablePayload(payload, storedFormat(contentType, headers), templateLimits.payloadBytes);
  return readJson(payloadText(bytes));
}
