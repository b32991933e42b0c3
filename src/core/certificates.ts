import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { costlyKeyProblem } from './private-keys.ts';

/** Characters of certificates with their chain, or of a key, in PEM: they are read for each connection. */
export const maxPemLength = 65_536;

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

/** Returns what is wrong with two PEM texts that should be a certificate, with its chain, and its key; null: nothing. */
export function certificateProblem(cert: string, key: string): { of: 'key' | 'pair'; problem: string } | null {
  const costly = costlyKeyProblem(key);
  if (costly !== null) return { of: 'key', problem: costly };
  try {
    createSecureContext({ cert, key });
    return null;
  } catch {
    return { of: 'pair', problem: 'are not a certificate and its private key' };
  }
}
