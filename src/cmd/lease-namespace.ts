import { existsSync, readFileSync } from 'node:fs';
import type { Config } from './config.ts';

export const serviceAccountNamespace = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** Namespace of the leader's Lease: the configured one, else that of the pod. */
export function leaseNamespace(config: Pick<Config, 'leaseNamespace'>): string {
  if (config.leaseNamespace !== undefined) return config.leaseNamespace;
  return existsSync(serviceAccountNamespace) ? readFileSync(serviceAccountNamespace, 'utf8').trim() : 'default';
}
