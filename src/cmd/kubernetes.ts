import { existsSync, readFileSync } from 'node:fs';
import { KubeConfig } from '@kubernetes/client-node';
import type { Clock } from '../core/clock.ts';
import { KubernetesApi } from '../store/kubernetes/kubernetes-api.ts';
import type { Config } from './config.ts';

const serviceAccountNamespace = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** The API server of the kubeconfig that was given, else of the pod's service account, else of `~/.kube/config`. */
export function connectKubernetes(config: Pick<Config, 'kubeconfigFile'>, clock: Clock): KubernetesApi {
  const loadKubeConfig = (): KubeConfig => {
    const kubeconfig = new KubeConfig();
    if (config.kubeconfigFile !== undefined) kubeconfig.loadFromFile(config.kubeconfigFile);
    else if (existsSync(serviceAccountNamespace)) kubeconfig.loadFromCluster();
    else kubeconfig.loadFromDefault();
    return kubeconfig;
  };
  return new KubernetesApi({ loadKubeConfig, clock });
}

export function leaseNamespace(config: Pick<Config, 'leaseNamespace'>): string {
  if (config.leaseNamespace !== undefined) return config.leaseNamespace;
  return existsSync(serviceAccountNamespace) ? readFileSync(serviceAccountNamespace, 'utf8').trim() : 'default';
}
