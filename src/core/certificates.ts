import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

/** Whether a PEM text holds certificates, and nothing that only looks like one. */
export function holdsCertificates(bundle: string): boolean {
  const parts = bundle.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  try {
    for (const part of parts) new X509Certificate(part);
    return parts.length > 0;
  } catch {
    return false;
  }
}

/** Whether the two PEM texts are a certificate, with its chain, and its key. */
export function isCertificateWithKey(cert: string, key: string): boolean {
  try {
    createSecureContext({ cert, key });
    return true;
  } catch {
    return false;
  }
}
