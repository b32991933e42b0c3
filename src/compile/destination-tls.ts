import { holdsCertificates, isCertificateWithKey } from '../core/certificates.ts';
import type { TlsRecord } from '../core/records.ts';
import type { SealedRecordField } from '../core/sealing-contexts.ts';
import type { SpecOf } from '../resources/kinds.ts';
import { type Compiled, refuse } from './compiled.ts';

type TlsSpec = NonNullable<SpecOf<'Destination'>['http']>['tls'];

/** Refuses what is no certificate, and a key that does not fit its certificate: deliveries would fail one by one. */
export function compileTls(
  tls: TlsSpec,
  secrets: Partial<Record<SealedRecordField, string>>,
  seal: (field: 'clientCertificate' | 'clientKey', plain: string) => string,
): Compiled<TlsRecord | null> {
  if (tls === undefined) return { record: null };
  const { clientCertificate, clientKey } = secrets;
  if (tls.caBundle !== undefined && !holdsCertificates(tls.caBundle))
    return refuse('InvalidTls', 'spec.http.tls.caBundle contains something other than certificates');
  if (clientCertificate !== undefined && clientKey !== undefined && !isCertificateWithKey(clientCertificate, clientKey))
    return refuse(
      'InvalidTls',
      'the values behind spec.http.tls.clientCertificateSecretRef and clientKeySecretRef are not a certificate and its key',
    );
  return {
    record: {
      ca: tls.caBundle ?? null,
      clientCertificate: clientCertificate === undefined ? null : seal('clientCertificate', clientCertificate),
      clientKey: clientKey === undefined ? null : seal('clientKey', clientKey),
    },
  };
}
