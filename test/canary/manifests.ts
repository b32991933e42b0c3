import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRecord } from '../../src/resources/field-tree.ts';
import { type Kind, kindPath } from '../../src/resources/kinds.ts';
import { bearersOfAllFields, withReferences } from './secret-fields.ts';

/** A new value of a secret, recorded under the field that it is for. */
export type PutCanary = (field: string, name: string, options?: { malformed?: boolean }) => string;

/** Whom webhook endpoints are of. */
export const customer = {
  apiVersion: 'posthorn.dev/v1alpha1',
  kind: 'WebhookApplication',
  metadata: { name: 'customer', namespace: 'default' },
  spec: {},
} as const;

/** A custom resource, and the Secret with the values that it refers to. */
export interface SecretHolder {
  kind: Kind;
  name: string;
  object: Record<string, unknown>;
  secret: Record<string, unknown>;
}

/**
 * Custom resources of namespace `default` with every field that refers to a Secret, once with a value of the right form and once with another.
 * Destinations go to `urls`, in order; what else an object needs is there, or is `customer`.
 */
export async function secretHolders(put: PutCanary, urls: readonly [string, string]): Promise<SecretHolder[]> {
  const bearers = await bearersOfAllFields();
  return [...bearers, ...bearers].map(({ kind, spec }, index) => {
    const malformed = index >= bearers.length;
    const name = `canary-${index}`;
    const values: Record<string, string> = {};
    const referring = withReferences(putInForce(urls[index % 2 === 0 ? 0 : 1], spec), `${kind} spec`, (field, what) => {
      const key = `${what}-${Object.keys(values).length}`;
      values[key] = put(`${field}${malformed ? ' (malformed)' : ''}`, what, { malformed });
      return { name, key };
    });
    if (!malformed) issueCertificate(values);
    const { apiVersion, namespaced } = kindPath(kind);
    return {
      kind,
      name,
      object: { apiVersion, kind, metadata: { name, ...(namespaced && { namespace: 'default' }) }, spec: referring },
      secret: { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'default' }, stringData: values },
    };
  });
}

/** Where there is a key, the certificate must be one for it. */
function issueCertificate(values: Record<string, string>): void {
  const entryOf = (name: string) => Object.entries(values).find(([each]) => each.startsWith(name));
  const [[name, commonName] = [], [, key] = []] = [entryOf('clientCertificate'), entryOf('clientKey')];
  if (name !== undefined && key !== undefined) values[name] = certificateFor(key, String(commonName));
}

/** A certificate (PEM) for the key, made out to that name. */
export function certificateFor(key: string, commonName: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-canary-'));
  const file = join(directory, 'key.pem');
  writeFileSync(file, key);
  const args = ['req', '-x509', '-new', '-key', file, '-days', '2', '-subj', `/CN=${commonName}`];
  const certificate = execFileSync('openssl', args, { stdio: 'pipe', encoding: 'utf8' });
  rmSync(directory, { recursive: true });
  return certificate;
}

function putInForce(url: string, spec: Record<string, unknown>): Record<string, unknown> {
  if (isRecord(spec['rotation'])) return { ...spec, rotation: { ...spec['rotation'], validUntil: '2099-01-01T00:00:00Z' } };
  if (spec['applicationRef'] !== undefined) return { ...spec, applicationRef: { name: customer.metadata.name } };
  if (!isRecord(spec['http']) || spec['http']['tls'] !== undefined) return spec;
  return { ...spec, http: { ...spec['http'], url } };
}
