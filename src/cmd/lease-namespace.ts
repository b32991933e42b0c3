import { existsSync, readFileSync } from 'node:fs';
import type { Config } from './config.ts';

export const serviceAccountNamespace = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** Namespace of the leader's Lease: the configured one, else that of the pod, else `default`. */
export function leaseNamespace(config: Pick<Config, 'leaseNamespace'>): string {
  return installationNamespace(config) ?? 'default';
}

/** Namespace of the installation: the configured one, else that of the pod; null: unknown. */
export function installationNamespace({ leaseNamespace: configured }: Pick<Config, 'leaseNamespace'>): string | null {
  if (configured !== undefined) return configured;
  return existsSync(serviceAccountNamespace) ? readFileSync(serviceAccountNamespace, 'utf8').trim() : null;
}
