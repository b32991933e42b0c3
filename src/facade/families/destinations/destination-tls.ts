import { z } from 'zod';
import { certificateProblem, holdsCertificates, maxPemLength } from '../../../core/certificates.ts';
import { PosthornError } from '../../../core/errors.ts';
import { looksMasked, maskedUnread } from '../../../core/masking.ts';
import { kinds, type PosthornObject, type SpecInputOf, type SpecOf } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { readSecret, type SecretKeyRef } from '../../records/read-secret.ts';
import { clearableToSpec } from '../../records/record-fields.ts';
import type { SentSecrets } from '../../records/secret-draft.ts';
import { isRedacted } from '../shared/redaction.ts';

/** `tls` of HTTP destinations: a private certificate authority, and the certificate that Posthorn shows. */

type Tls = NonNullable<SpecOf<'Destination'>['http']>['tls'];
type TlsInput = NonNullable<SpecInputOf<'Destination'>['http']>['tls'];

const spec = kinds.Destination.spec.shape.http.unwrap().shape.tls.unwrap().shape;
const pem = z.string().min(1).max(maxPemLength).nullable().optional();

export const tlsBody = z
  .strictObject({
    caBundle: spec.caBundle.unwrap().nullable().optional().describe('Certificates (PEM) that are trusted instead of the well-known ones.'),
    clientCertificate: pem.describe('Certificate (PEM) that is shown to the endpoint, with its chain. Masked on read.'),
    clientKey: pem.describe('Key (PEM) of that certificate. Masked on read.'),
  })
  .meta({
    id: 'DestinationTlsBody',
    description:
      'Fields that are not sent stay unchanged, null removes one; certificate and key belong together. Masks sent back keep what is stored.',
  });
type TlsBody = z.output<typeof tlsBody>;

export const tlsRecord = z
  .object({
    caBundle: z.string().nullable().describe('Certificates (PEM) that are trusted instead of the well-known ones; null: those.'),
    clientCertificate: z.string().nullable().describe('Certificate that is shown to the endpoint, masked; null when there is none.'),
    clientKey: z.string().nullable().describe('Key of that certificate, masked; null when there is none.'),
  })
  .meta({ id: 'DestinationTls', description: 'Private certificate authority and mutual TLS.' });

const refOf = { clientCertificate: 'clientCertificateSecretRef', clientKey: 'clientKeySecretRef' } as const;
type PemField = keyof typeof refOf;

/** `show` makes of certificate and key what the record shows of them. */
export async function tlsToRecord(
  tls: Tls,
  show: (ref: SecretKeyRef) => Promise<string> | string,
): Promise<z.output<typeof tlsRecord> | null> {
  if (tls === undefined) return null;
  const { caBundle = null, clientCertificateSecretRef: certificate, clientKeySecretRef: key } = tls;
  return {
    caBundle,
    clientCertificate: certificate === undefined ? null : await show(certificate),
    clientKey: key === undefined ? null : await show(key),
  };
}

/** How certificate and key are shown: the ends of all PEM texts are alike. */
export function shownPem(): string {
  return maskedUnread;
}

/** The `tls` of a spec; VALIDATION_FAILED for what is no certificate, and for a key that is not that of the certificate. */
export async function tlsToSpec(
  sent: TlsBody | null | undefined,
  object: PosthornObject<'Destination'> | undefined,
  { call, secrets }: { call: Call; secrets: SentSecrets },
): Promise<TlsInput> {
  const current = object?.spec.http?.tls;
  if (sent === undefined) return current;
  if (sent === null) return undefined;
  const caBundle = clearableToSpec(sent.caBundle, current?.caBundle);
  if (caBundle !== undefined && caBundle !== current?.caBundle && !holdsCertificates(caBundle))
    throw new PosthornError('VALIDATION_FAILED', 'tls.caBundle contains something that is not a certificate.');
  const clientCertificateSecretRef = await pemRef('clientCertificate', sent, current, secrets);
  const clientKeySecretRef = await pemRef('clientKey', sent, current, secrets);
  if ((clientCertificateSecretRef === undefined) !== (clientKeySecretRef === undefined))
    throw new PosthornError('VALIDATION_FAILED', 'tls.clientCertificate and tls.clientKey belong together; send both or neither.');
  if (isNew(sent.clientCertificate) || isNew(sent.clientKey)) {
    const certificate = await pemText(sent.clientCertificate, clientCertificateSecretRef, object, call);
    const key = await pemText(sent.clientKey, clientKeySecretRef, object, call);
    const wrong = certificate === null || key === null ? null : certificateProblem(certificate, key);
    if (wrong !== null) {
      const what = wrong.of === 'pair' ? 'tls.clientCertificate and tls.clientKey' : 'tls.clientKey';
      throw new PosthornError('VALIDATION_FAILED', `${what} ${wrong.problem}.`);
    }
  }
  const tls = { caBundle, clientCertificateSecretRef, clientKeySecretRef };
  return Object.values(tls).every((value) => value === undefined) ? undefined : tls;
}

/** Whether the key is kept although the caller did not prove knowledge of it. */
export function keepsClientKey(sent: TlsBody | null | undefined, current: Tls): boolean {
  return current?.clientKeySecretRef !== undefined && sent !== null && sent?.clientKey !== null && !isNew(sent?.clientKey);
}

/** `tls` of an import: certificate and key that it does not hold are kept or, when there are none, left out: `isMissing`. */
export function importedTls(sent: TlsBody | null | undefined, current: Tls): { tls: TlsBody | null | undefined; isMissing: boolean } {
  const { clientCertificate, clientKey, ...rest } = sent ?? {};
  if (!isRedacted({ clientCertificate, clientKey })) return { tls: sent, isMissing: false };
  if (current?.clientKeySecretRef !== undefined) return { tls: rest, isMissing: false };
  return { tls: { ...rest, clientCertificate: null, clientKey: null }, isMissing: true };
}

function pemRef(field: PemField, sent: TlsBody, current: Tls, secrets: SentSecrets): Promise<SecretKeyRef> | SecretKeyRef | undefined {
  const value = sent[field];
  const stored = current?.[refOf[field]];
  if (typeof value !== 'string') return clearableToSpec(value, stored);
  return secrets.put(field, value, stored, { path: `tls.${field}`, mask: shownPem });
}

/** Null: it cannot be read; the controller will validate it. */
async function pemText(
  sent: string | null | undefined,
  ref: SecretKeyRef | undefined,
  object: PosthornObject<'Destination'> | undefined,
  call: Call,
): Promise<string | null> {
  if (isNew(sent)) return sent;
  return ref === undefined || object === undefined ? null : readSecret(call, object, ref);
}

function isNew(value: string | null | undefined): value is string {
  return typeof value === 'string' && !looksMasked(value);
}
