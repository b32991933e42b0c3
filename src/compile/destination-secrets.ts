import type { SealedRecordField } from '../core/sealing-contexts.ts';
import type { SpecOf } from '../resources/kinds.ts';

export interface SecretReference {
  name: string;
  key: string;
}

/** The references to Secrets that the destination needs, by the field of the record that takes the value. */
export type DestinationSecretReferences = Partial<Record<SealedRecordField, SecretReference>>;

/** Only those of the chosen auth type: one left over from another type is not read. */
export function destinationSecretReferences({ type, http }: SpecOf<'Destination'>): DestinationSecretReferences {
  if (type !== 'http' || http === undefined) return {};
  const { clientCertificateSecretRef: clientCertificate, clientKeySecretRef: clientKey } = http.tls ?? {};
  return {
    ...(http.signingSecretRef !== undefined && { signingSecrets: http.signingSecretRef }),
    ...authReference(http.auth),
    ...(clientCertificate !== undefined && { clientCertificate }),
    ...(clientKey !== undefined && { clientKey }),
  };
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
