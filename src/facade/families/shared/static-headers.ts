import { carriesCredential } from '../../../core/credential-names.ts';
import { PosthornError } from '../../../core/errors.ts';
import { looksMasked, masked, meansStored } from '../../../core/masking.ts';
import { originOf } from '../../../core/origin.ts';
import type { ManagedFieldsEntry } from '../../../resources/metadata.ts';
import type { Call } from '../../http/operation.ts';
import { foreignOwners } from '../../records/owned-spec.ts';
import { readMasked, readSecret, type SecretKeyRef, type SecretOwner } from '../../records/read-secret.ts';
import { isSameRef, type SentSecrets } from '../../records/secret-draft.ts';
import { losesTls, redacted } from './redaction.ts';

/** Headers that configuration adds to every request: of destinations, cron jobs and webhook endpoints. */

export interface StaticHeader {
  name: string;
  value: string;
}

/** As a spec has it: with its value, or the reference to it. */
export interface HeaderSpec {
  name: string;
  value?: string | undefined;
  valueSecretRef?: SecretKeyRef | undefined;
}

/** `value` is absent where it is not in clear. */
type StoredHeader = Pick<HeaderSpec, 'name' | 'value'>;

/** Headers as an object of names and values. */
export function headerObject(headers: readonly StaticHeader[]): Record<string, string> {
  return Object.fromEntries(headers.map(({ name, value }) => [name, value]));
}

/** The headers of an object of names and values. */
export function headerList(sent: Readonly<Record<string, string>> | null): StaticHeader[] {
  return Object.entries(sent ?? {}).map(([name, value]) => ({ name, value }));
}

/** Key in the Secret of a manifest for the value of a header; it may have letters, digits, `-`, `_` and `.` only. */
export function keyOfHeader(name: string): string {
  return `header-${name.toLowerCase().replace(/[^-.0-9a-z]/g, (character) => `_${character.charCodeAt(0).toString(16)}`)}`;
}

/** The headers as answers show them, credentials masked. */
export function shownHeaders(call: Call, object: SecretOwner, headers: readonly HeaderSpec[] | undefined): Promise<StaticHeader[]> {
  return withCredentials(headers, (ref) => readMasked(call, object, ref), masked);
}

/** The headers as documents have them that hold no credentials. */
export function redactedHeaders(headers: readonly HeaderSpec[] | undefined): Promise<StaticHeader[]> {
  const hide = () => redacted;
  return withCredentials(headers, hide, hide);
}

/** The headers with all values; `reveal` reads one behind a reference. */
export function revealedHeaders(
  headers: readonly HeaderSpec[] | undefined,
  reveal: (ref: SecretKeyRef) => Promise<string>,
): Promise<StaticHeader[]> {
  return withCredentials(headers, reveal, (value) => value);
}

function withCredentials(
  headers: readonly HeaderSpec[] = [],
  ofSecret: (ref: SecretKeyRef) => Promise<string> | string,
  ofLiteral: (value: string) => string,
): Promise<StaticHeader[]> {
  return Promise.all(
    headers.map(async ({ name, value = '', valueSecretRef: ref }) => {
      if (ref !== undefined) return { name, value: await ofSecret(ref) };
      return { name, value: carriesCredential({ name, value }) ? ofLiteral(value) : value };
    }),
  );
}

/** With a reference: it is kept, whatever the value. */
type SentHeader = StaticHeader & Pick<HeaderSpec, 'valueSecretRef'>;

interface HeaderWrite {
  /** Absent on create. */
  current: { metadata: { managedFields?: readonly ManagedFieldsEntry[] | undefined } } | undefined;
  /** As `current` has them. */
  stored: readonly HeaderSpec[] | undefined;
  /** Where in the spec they are. */
  path: readonly string[];
  secrets: SentSecrets;
}

/**
 * The spec headers of sent ones, credentials in Secrets; undefined: none. A mask, or its placeholder in documents, is the stored
 * value. What is not sent stays, but credentials that kubectl has left in the spec go into Secrets, too, unless another manager
 * owns them. VALIDATION_FAILED for the mask of something else.
 */
export async function headersToSpec(
  sent: readonly StaticHeader[] | undefined,
  { current, stored = [], path, secrets }: HeaderWrite,
): Promise<HeaderSpec[] | undefined> {
  const isForeign = foreignOwners(current?.metadata.managedFields ?? [], ...path).length > 0;
  const headers: HeaderSpec[] = [];
  const wanted: readonly SentHeader[] = sent ?? stored.map(({ value = '', ...header }) => ({ ...header, value }));
  for (const { name, value, valueSecretRef: own } of wanted) {
    const before = stored.find((header) => isSameName(header, { name }));
    const ref = own ?? before?.valueSecretRef;
    if (own !== undefined || (ref !== undefined && value === redacted)) {
      headers.push({ name, valueSecretRef: ref });
      continue;
    }
    const literal = ref === undefined ? literalOf(before) : null;
    const plain = literal !== null && (meansStored(value, literal) || value === redacted) ? literal : value;
    const isSecret = ref !== undefined || plain === redacted || looksMasked(plain) || carriesCredential({ name, value: plain });
    const stays = !isSecret || (isForeign && plain === literal);
    headers.push(
      stays ? { name, value: plain } : { name, valueSecretRef: await secrets.put('header', plain, ref, { path: `headers.${name}` }) },
    );
  }
  return headers.length === 0 ? undefined : headers;
}

/** A credential that the spec holds itself; null: it is none, or of a Secret. */
function literalOf(header: HeaderSpec | undefined): string | null {
  if (header?.value === undefined) return null;
  return carriesCredential({ name: header.name, value: header.value }) ? header.value : null;
}

/** Whether a header of the object, and of its new spec, waits for its credential since it was imported without. */
export async function lacksHeader(call: Call, object: SecretOwner, before: readonly HeaderSpec[] = [], after = before): Promise<boolean> {
  const refs = before.flatMap(({ valueSecretRef: ref }) => (ref === undefined ? [] : [ref]));
  for (const { value, valueSecretRef: ref } of after) {
    if (value === redacted) return true;
    if (ref === undefined || !refs.some((each) => isSameRef(each, ref))) continue;
    if ((await readSecret(call, object, ref)) === redacted) return true;
  }
  return false;
}

/**
 * Headers of an import beside the stored ones of an object: a credential that it does not hold is the stored one or, where there is none, to
 * be sent: `isMissing`.
 */
export async function importedHeaders(
  call: Call,
  sent: Readonly<Record<string, string>> | null | undefined,
  object: SecretOwner | undefined,
  stored: readonly HeaderSpec[] = [],
): Promise<{ headers: Record<string, string> | null | undefined; isMissing: boolean }> {
  const headers =
    sent == null ? sent : headerList(sent).map((header) => (hidesCredential(header) ? { ...header, value: redacted } : header));
  const keeps = (header: HeaderSpec): boolean =>
    headers === undefined || headers?.some((each) => each.value === redacted && isSameName(each, header)) === true;
  const kept = stored.filter((header) => keeps(header) && isCredential(header));
  const isUnknown = headers?.some((header) => header.value === redacted && !kept.some((each) => isSameName(each, header))) === true;
  const isMissing = isUnknown || (object !== undefined && (await lacksHeader(call, object, kept)));
  return { headers: headers == null ? headers : headerObject(headers), isMissing };
}

/**
 * CREDENTIALS_REQUIRED when a credential among the stored headers would go to another origin although the caller did not prove knowledge of it. No
 * credential is sent in clear, even by an admin.
 */
export function refuseHeadersElsewhere(
  call: Call,
  before: { url: string; headers?: readonly StoredHeader[] | undefined } | undefined,
  after: { url: string; headers: readonly StaticHeader[] | undefined },
): void {
  if (before === undefined || originOf(before.url) === originOf(after.url)) return;
  if (call.caller.role === 'admin' && !losesTls(before.url, after.url)) return;
  const credentials = (before.headers ?? []).filter(isCredential);
  const isKept = (header: StoredHeader): boolean =>
    after.headers === undefined || after.headers.some((each) => isSameName(each, header) && hidesCredential(each));
  if (credentials.some(isKept))
    throw new PosthornError('CREDENTIALS_REQUIRED', 'The URL has another origin: send headers with the credentials for it.');
}

/** Whether the value does not identify the credential. */
function hidesCredential({ value }: StaticHeader): boolean {
  return value === redacted || looksMasked(value);
}

/** A value that is held elsewhere, or sealed, is one. */
function isCredential({ name, value }: StoredHeader): boolean {
  return value === undefined || carriesCredential({ name, value });
}

function isSameName(one: { name: string }, other: { name: string }): boolean {
  return one.name.toLowerCase() === other.name.toLowerCase();
}
