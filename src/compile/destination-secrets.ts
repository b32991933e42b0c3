import type { CredentialField } from '../core/sealing-contexts.ts';
import type { SpecOf } from '../resources/kinds.ts';
import type { SecretReference } from '../resources/secret-use.ts';

/** The references to Secrets that the destination needs, by the field of the record that takes the value. */
export type DestinationSecretReferences = Partial<Record<CredentialField, SecretReference>>;

/** Only those of the chosen auth type: one left over from another type is not read; with the platform's identity none. */
export function destinationSecretReferences(spec: SpecOf<'Destination'>): DestinationSecretReferences {
  const { type, http, warehouse } = spec;
  if (type !== 'http') return warehouse?.identity === 'platform' ? {} : storeReference(spec);
  if (http === undefined) return {};
  const { clientCertificateSecretRef: clientCertificate, clientKeySecretRef: clientKey } = http.tls ?? {};
  return {
    ...(http.signingSecretRef !== undefined && { signingSecrets: http.signingSecretRef }),
    ...authReference(http.auth),
    ...(clientCertificate !== undefined && { clientCertificate }),
    ...(clientKey !== undefined && { clientKey }),
  };
}

function storeReference({ type, s3, r2, gcs, azureBlob }: SpecOf<'Destination'>): DestinationSecretReferences {
  const named = (field: CredentialField, reference: SecretReference | undefined): DestinationSecretReferences =>
    reference === undefined ? {} : { [field]: reference };
  switch (type) {
    case 'http':
      return {};
    case 's3':
      return named('secretAccessKey', s3?.secretAccessKeySecretRef);
    case 'r2':
      return named('secretAccessKey', r2?.secretAccessKeySecretRef);
    case 'gcs':
      return named('serviceAccountKey', gcs?.serviceAccountKeySecretRef);
    case 'azure_blob':
      return named('accountKey', azureBlob?.accountKeySecretRef);
    default:
      return type satisfies never;
  }
}

function authReference(auth: NonNullable<SpecOf<'Destination'>['http']>['auth']): DestinationSecretReferences {
  switch (auth?.type) {
    case 'basic':
      return auth.passwordSecretRef === undefined ? {} : { password: auth.passwordSecretRef };
    case 'bearer':
      return auth.tokenSecretRef === undefined ? {} : { token: auth.tokenSecretRef };
    case 'api_key':
      return auth.keySecretRef === undefined ? {} : { key: auth.keySecretRef };
    case 'custom_header':
      return auth.headerValueSecretRef === undefined ? {} : { headerValue: auth.headerValueSecretRef };
    case 'none':
    case undefined:
      return {};
  }
}
