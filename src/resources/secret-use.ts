import { originOf } from '../core/origin.ts';
import type { CredentialField } from '../core/sealing-contexts.ts';
import { apiVersion } from './definition.ts';
import { isRecord } from './field-tree.ts';
import type { PosthornKind, SecretObject } from './kinds.ts';
import type { ObjectMeta } from './metadata.ts';

/** Annotation of a Secret that the API made: the object that may use it, as `Kind/name/uid`. */
const madeForAnnotation = 'posthorn.dev/made-for';

/** Annotation of such a Secret: where its values may be sent; absent: the object names no origin. */
const originAnnotation = 'posthorn.dev/origin';

/** Label with the value `true`: objects of the namespace may use the Secret, where the installation requires consent. */
export const usableLabel = 'posthorn.dev/usable';

/** The holder of such a token has the rights of the ServiceAccount; no setting lets objects send it. */
const tokenOfServiceAccount = 'kubernetes.io/service-account-token';

const madeByApi = { 'app.kubernetes.io/managed-by': 'posthorn' } as const;

/** A key of a Secret in the namespace of the object. */
export interface SecretReference {
  name: string;
  key: string;
}

/** An object that refers to Secrets. */
export interface SecretUser {
  kind: PosthornKind;
  metadata: Pick<ObjectMeta, 'name' | 'uid'>;
  spec: unknown;
}

export interface SecretUseRules {
  /** Secrets of users need the label `posthorn.dev/usable`. */
  requiresConsent: boolean;
  /** The origin that the published record of the object names; undefined: nothing is published. */
  publishedOrigin(): Promise<string | null | undefined>;
}

/**
 * The receiver of the credentials of an object, as its spec names it: an origin, or its equivalent. Null: the credentials are sent
 * nowhere, name the receiver themselves, or go to the only one of the type.
 */
export function credentialOrigin(kind: PosthornKind, spec: unknown): string | null {
  switch (kind) {
    case 'Destination':
      switch (textAt(spec, 'type')) {
        case 'r2':
          return originAt(spec, 'r2', 'endpoint');
        case 'azure_blob':
          return originAt(spec, 'azureBlob', 'accountName');
        case 's3':
        case 'gcs':
          return null;
        default:
          return originAt(spec, 'http', 'url');
      }
    case 'NotificationChannel':
      return textAt(spec, 'type') === 'webhook' ? originAt(spec, 'webhook', 'url') : null;
    case 'HttpCronJob':
    case 'WebhookEndpoint':
      return originAt(spec, 'url');
    default:
      return null;
  }
}

/** All `…SecretRef` members of a spec, at any depth, each with the field of the record that takes the value. */
export function secretUsesIn(value: unknown): { field: CredentialField; reference: SecretReference }[] {
  if (Array.isArray(value)) return value.flatMap(secretUsesIn);
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([member, inner]) => {
    const field = fieldsOfReferences[member];
    if (field === undefined) return secretUsesIn(inner);
    return isSecretReference(inner) ? [{ field, reference: { name: inner.name, key: inner.key } }] : [];
  });
}

/** Whether a member of a spec with this name points at a value of a Secret. */
export function isSecretRefName(name: string): boolean {
  return fieldsOfReferences[name] !== undefined;
}

export function isSecretReference(value: unknown): value is SecretReference {
  return isRecord(value) && typeof value['name'] === 'string' && typeof value['key'] === 'string';
}

const fieldsOfReferences: Readonly<Record<string, CredentialField>> = {
  signingSecretRef: 'signingSecrets',
  previousSecretRef: 'signingSecrets',
  verifyTokenSecretRef: 'verifyToken',
  passwordSecretRef: 'password',
  tokenSecretRef: 'token',
  keySecretRef: 'key',
  headerValueSecretRef: 'headerValue',
  valueSecretRef: 'headerValue',
  clientCertificateSecretRef: 'clientCertificate',
  clientKeySecretRef: 'clientKey',
  secretAccessKeySecretRef: 'secretAccessKey',
  serviceAccountKeySecretRef: 'serviceAccountKey',
  accountKeySecretRef: 'accountKey',
  webhookUrlSecretRef: 'webhookUrl',
  routingKeySecretRef: 'routingKey',
};

/** Annotation of the API's Secrets: their permitted users. */
export function madeForMetadata(user: SecretUser): Required<Pick<ObjectMeta, 'labels' | 'annotations' | 'ownerReferences'>> {
  const { kind, metadata } = user;
  const origin = credentialOrigin(kind, user.spec);
  return {
    labels: { ...madeByApi },
    annotations: { [madeForAnnotation]: nameOf(user), ...(origin !== null && { [originAnnotation]: origin }) },
    ownerReferences: [{ apiVersion, kind, name: metadata.name, uid: metadata.uid }],
  };
}

/** The object and origin that the annotations name, to which the values of the Secret are bound; undefined: they name none. */
export function madeForIn({ annotations = {} }: Pick<ObjectMeta, 'annotations'>): string | undefined {
  const user = annotations[madeForAnnotation];
  return user === undefined ? undefined : JSON.stringify([user, annotations[originAnnotation] ?? null]);
}

/** Whether the API made the Secret. One whose annotation was removed still has its labels and its owner. */
export function isMadeByApi({ metadata }: SecretObject): boolean {
  if (metadata.annotations?.[madeForAnnotation] !== undefined) return true;
  const isLabelled = Object.entries(madeByApi).every(([name, value]) => metadata.labels?.[name] === value);
  return isLabelled && metadata.ownerReferences?.some((owner) => owner.apiVersion === apiVersion) === true;
}

/**
 * Why the object may not use the Secret for the field, and what to do about it; null when it may. A Secret that the API made serves the object
 * that it was made for, at the origin that it was made for, in the field that it was made for. One without the annotation, which names only its owner,
 * serves its owner at the published origin.
 */
export async function secretRefusal(
  secret: SecretObject,
  user: SecretUser,
  { field, key }: { field: CredentialField; key: string },
  { requiresConsent, publishedOrigin }: SecretUseRules,
): Promise<string | null> {
  const { name, annotations = {}, labels = {}, ownerReferences = [] } = secret.metadata;
  if (secret.type === tokenOfServiceAccount) return `Secret ${name} holds the token of a ServiceAccount, which objects must not use`;
  if (!isMadeByApi(secret)) {
    if (!requiresConsent || labels[usableLabel] === 'true') return null;
    return `Secret ${name} does not have the label ${usableLabel}: "true", which this installation requires of Secrets that objects refer to`;
  }
  const madeFor = annotations[madeForAnnotation];
  const isOfUser = madeFor === undefined ? ownerReferences.some(({ uid }) => uid === user.metadata.uid) : madeFor === nameOf(user);
  const instead = 'send the credential to the API for this object, or refer to a Secret of your own';
  if (!isOfUser) return `Secret ${name} was made by the API for another object: ${instead}`;
  if (!fieldsOfKeys[field].includes(key.replace(/-[a-z2-7]{8}$/, '')))
    return `key ${key} of Secret ${name} was made by the API for another field: ${instead}`;
  const origin = credentialOrigin(user.kind, user.spec);
  const allowed = madeFor === undefined ? await publishedOrigin() : (annotations[originAnnotation] ?? null);
  if (allowed === undefined || allowed === origin) return null;
  const made = allowed === null ? 'for no URL' : `for ${allowed}`;
  const now = origin === null ? 'none' : origin;
  return `Secret ${name} was made by the API ${made}, and the object now names ${now}: change the URL by the API, ${instead}`;
}

/** The field that the API has in front of the random end of a key, by the field of the record. */
const fieldsOfKeys: Readonly<Record<CredentialField, readonly string[]>> = {
  signingSecrets: ['signingSecret', 'secret'],
  verifyToken: ['verifyToken'],
  webhookUrl: ['webhookUrl'],
  routingKey: ['routingKey'],
  password: ['password'],
  token: ['token'],
  key: ['key'],
  headerValue: ['headerValue', 'header'],
  clientCertificate: ['clientCertificate'],
  clientKey: ['clientKey'],
  secretAccessKey: ['secretAccessKey'],
  serviceAccountKey: ['serviceAccountKey'],
  accountKey: ['accountKey'],
};

function nameOf({ kind, metadata }: SecretUser): string {
  return `${kind}/${metadata.name}/${metadata.uid}`;
}

function textAt(value: unknown, ...path: string[]): string | undefined {
  let inner = value;
  for (const name of path) inner = isRecord(inner) ? inner[name] : undefined;
  return typeof inner === 'string' ? inner : undefined;
}

function originAt(value: unknown, ...path: string[]): string | null {
  const text = textAt(value, ...path);
  return text === undefined ? null : originOf(text);
}
