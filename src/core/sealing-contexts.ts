import type { AccessKeyRecord, HttpAuthRecord, RecordKind, TlsRecord } from './records.ts';
import type { SealingContext } from './sealing.ts';

/** Fields of records that hold sealed values; a list of secrets has one name for all of its members. */
export type SealedRecordField =
  | 'signingSecrets'
  | 'verifyToken'
  | 'webhookUrl'
  | 'routingKey'
  | Exclude<keyof TlsRecord, 'ca'>
  | Exclude<keyof AccessKeyRecord, 'accessKeyId'>
  | 'serviceAccountKey'
  | 'accountKey'
  | Exclude<KeysOfUnion<HttpAuthRecord>, 'type' | 'username' | 'headerName'>
  /** Field of the record `credentials`. */
  | 'value';

/** Fields of values behind a reference to a Secret. */
export type CredentialField = Exclude<SealedRecordField, 'value'>;

type KeysOfUnion<T> = T extends T ? keyof T : never;

/**
 * Context of a sealed value in a published record. The controller seals with it; ingest (source signing secrets) and
 * delivery (destination auth and signing secrets) open with it. `organization` and `id` are API ids.
 */
export function recordSealingContext(organization: string, kind: RecordKind, id: string, field: SealedRecordField): SealingContext {
  return { organization, kind, name: id, field };
}

/**
 * Context of a sealed value in a Secret made by the facade. The facade seals with it, the controller opens. `organization`
 * is the API id, `secretName` the Secret's metadata.name, `key` the key in its data, `madeFor` the object and origin that its annotations name.
 */
export function secretSealingContext(organization: string, secretName: string, key: string, madeFor?: string): SealingContext {
  return { organization, kind: 'Secret', name: secretName, field: key, madeFor };
}

/** Context of the signing secrets of a webhook endpoint. The facade and the controller seal with it, delivery opens. */
export function webhookSecretSealingContext(organization: string, endpointId: string): SealingContext {
  return { organization, kind: 'webhookEndpoint', name: endpointId, field: 'secret' };
}

/** Context of a sealed header of a webhook endpoint. The facade and the controller seal with it, delivery opens. */
export function webhookHeaderSealingContext(organization: string, endpointId: string): SealingContext {
  return { organization, kind: 'webhookEndpoint', name: endpointId, field: 'header' };
}

/** Context of the cookie of a session; it names its organization itself. The facade seals and opens. */
export const sessionCookieSealingContext: SealingContext = { organization: '', kind: 'Session', name: '', field: 'cookie' };

/** Context of the credential of a session; the facade seals and opens. */
export function sessionCredentialSealingContext(organization: string, id: string): SealingContext {
  return { organization, kind: 'Session', name: id, field: 'credential' };
}

/** Context of the response kept for an idempotency key; the facade seals and opens. */
export function idempotentAnswerSealingContext(organization: string, key: string): SealingContext {
  return { organization, kind: 'IdempotentAnswer', name: key, field: 'answer' };
}
