import { certificateProblem, holdsCertificates, maxPemLength } from '../core/certificates.ts';
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
  const long = clientCertificate !== undefined && clientCertificate.length > maxPemLength;
  if (long)
    return refuse('InvalidTls', `the value behind spec.http.tls.clientCertificateSecretRef is longer than ${maxPemLength} characters`);
  if (tls.caBundle !== undefined && !holdsCertificates(tls.caBundle))
    return refuse('InvalidTls', 'spec.http.tls.caBundle contains something other than certificates');
  const wrong = clientCertificate === undefined || clientKey === undefined ? null : certificateProblem(clientCertificate, clientKey);
  if (wrong !== null) {
    const pair = 'values behind spec.http.tls.clientCertificateSecretRef and clientKeySecretRef';
    return refuse('InvalidTls', `the ${wrong.of === 'pair' ? pair : 'value behind spec.http.tls.clientKeySecretRef'} ${wrong.problem}`);
  }
  return {
    record: {
      ca: tls.caBundle ?? null,
      clientCertificate: clientCertificate === undefined ? null : seal('clientCertificate', clientCertificate),
      clientKey: clientKey === undefined ? null : seal('clientKey', clientKey),
    },
  };
}
