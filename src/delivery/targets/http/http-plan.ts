import type { Dispatcher } from 'undici';
import type { EgressRules } from '../../../core/egress-policy.ts';
import type { ReadyTemplate } from '../../../core/header-template.ts';
import type { PayloadLinks } from '../../../core/payload-link.ts';
import { costlyKeyProblem } from '../../../core/private-keys.ts';
import type { HttpAuthRecord, HttpDestinationRecord } from '../../../core/records.ts';
import { describesPayload } from '../../../core/reserved-headers.ts';
import type { Keyring } from '../../../core/sealing.ts';
import { recordSealingContext, type SealedRecordField } from '../../../core/sealing-contexts.ts';
import { openedSigningTexts } from '../../../core/signature-scheme.ts';
import { signingKey, withoutPrefix } from '../../../core/signing.ts';
import type { ConnectionRules, Dispatchers } from './dispatchers.ts';
import { httpTarget } from './http-target.ts';
import { ownTemplates } from './own-templates.ts';
import { authHeaders, type DestinationHeaders, destinationHeaders, isOwnHeader, openedHeaders } from './request-headers.ts';
import { SentSecrets, secretsInHeader, secretsInQuery } from './sent-secrets.ts';

/** How a target gets a link instead of the payload. */
export interface ThinForm {
  /** Null: the worker has no public URL, and nothing is sent. */
  links: PayloadLinks | null;
  /** The content type that the target sets itself, which is that of the payload; null: none. */
  contentType: string | null;
  /** The coding in the same way. */
  contentEncoding: string | null;
}

/** How requests to an endpoint are made. */
export interface HttpPlan {
  origin: string;
  path: string;
  /** The query of an event is appended to the path. */
  forwardsQuery: boolean;
  method: HttpDestinationRecord['http']['method'];
  /** Null: it gets payloads. */
  thin: ThinForm | null;
  timeoutMs: number;
  headers: DestinationHeaders;
  /** Templates of headers whose values are made for each attempt; null: none. */
  templates: readonly ReadyTemplate[] | null;
  /** Credentials and keys of requests. */
  secrets: SentSecrets;
  /** Called for each attempt: unused pools are closed. */
  dispatcher: () => Dispatcher;
}

/** Null when a secret does not open, is no signing secret, or is a key that takes too long to sign with. `route`: the slug of the route; empty: the request is for none. */
export function httpPlan(
  { org, id, slug, http }: HttpDestinationRecord,
  {
    keyring,
    dispatchers,
    egress,
    payloadLinks,
    route = '',
  }: { keyring: Keyring; dispatchers: Dispatchers; egress: EgressRules; payloadLinks: PayloadLinks | null; route?: string },
): HttpPlan | null {
  const opened = openedSecrets((sealed, field) => keyring.open(sealed, recordSealingContext(org, 'destination', id, field)), http);
  if (opened === null) return null;
  const { origin, path, query } = httpTarget(http.url);
  const isThin = http.payloadForm === 'thin';
  return {
    origin,
    path,
    forwardsQuery: http.forwardQuery ?? false,
    method: http.method,
    timeoutMs: http.timeoutMs,
    thin: isThin ? thinForm(opened.headers.own, payloadLinks) : null,
    headers: isThin ? withoutPayloadHeaders(opened.headers) : opened.headers,
    templates: ownTemplates(http.headerTemplates, opened.headers.own, isThin ? isThinHeader : isOwnHeader, { route, destination: slug }),
    secrets: new SentSecrets([...opened.secrets, ...secretsInQuery(query)], opened.secretNames),
    dispatcher: dispatchers.forRules({ egress, tls: opened.tls, usesProxy: http.useStaticIp ?? false }),
  };
}

/** The thin form of a target with these headers, names in lower case. */
export function thinForm(own: readonly (readonly [string, string])[], links: PayloadLinks | null): ThinForm {
  const ownValue = (wanted: string): string | null => own.find(([name]) => name === wanted)?.[1] ?? null;
  return { links, contentType: ownValue('content-type'), contentEncoding: ownValue('content-encoding') };
}

/** Headers about the payload do not apply to the object that links to it. */
function withoutPayloadHeaders(headers: DestinationHeaders): DestinationHeaders {
  const own = headers.own.filter(([name]) => !describesPayload(name));
  return { ...headers, own, names: new Set(own.map(([name]) => name)) };
}

function isThinHeader(name: string): boolean {
  return !describesPayload(name) && isOwnHeader(name);
}

function openedSecrets(
  open: (sealed: string, field: SealedRecordField) => string,
  http: HttpDestinationRecord['http'],
): { headers: DestinationHeaders; tls: ConnectionRules['tls']; secrets: string[]; secretNames: string[] } | null {
  try {
    const signingSecrets = openedSigningTexts(http.signingSecrets, (secret) => open(secret, 'signingSecrets'));
    const auth = openedAuth(http.auth, open);
    const own = openedHeaders(http.headers, (sealed) => open(sealed, 'headerValue'));
    const { ca = null, clientCertificate: cert = null, clientKey: key = null } = http.tls ?? {};
    const opened = { cert: cert === null ? null : open(cert, 'clientCertificate'), key: key === null ? null : open(key, 'clientKey') };
    if (opened.key !== null && costlyKeyProblem(opened.key) !== null) return null;
    return {
      headers: destinationHeaders(own.headers, auth, signingSecrets.map(signingKey), http.forwardHeaders),
      tls: http.tls === undefined ? null : { ca, ...opened },
      secrets: [
        ...signingSecrets.flatMap((secret) => [secret, withoutPrefix(secret)]),
        ...own.secrets,
        ...authHeaders(auth).flatMap(([name, value]) => secretsInHeader(name, value)),
        ...(opened.key === null ? [] : [opened.key]),
      ],
      secretNames: [...own.secretNames, ...authHeaders(auth).map(([name]) => name)],
    };
  } catch {
    return null;
  }
}

function openedAuth(auth: HttpAuthRecord, open: (sealed: string, field: SealedRecordField) => string): HttpAuthRecord {
  switch (auth.type) {
    case 'none':
      return auth;
    case 'basic':
      return { ...auth, password: open(auth.password, 'password') };
    case 'bearer':
      return { ...auth, token: open(auth.token, 'token') };
    case 'api_key':
      return { ...auth, key: open(auth.key, 'key') };
    case 'custom_header':
      return { ...auth, headerValue: open(auth.headerValue, 'headerValue') };
    default:
      return auth satisfies never;
  }
}
