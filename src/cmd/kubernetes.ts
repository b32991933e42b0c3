import { existsSync } from 'node:fs';
import { KubeConfig } from '@kubernetes/client-node';
import type { Clock } from '../core/clock.ts';
import { KubernetesApi } from '../store/kubernetes/kubernetes-api.ts';
import type { Config } from './config.ts';
import { serviceAccountNamespace } from './lease-namespace.ts';
import { version } from './version.ts';

/** Identifies the release in the audit log of the API server. */
const userAgent = `posthorn/${version}`;

/** The API server of the kubeconfig that was given, else of the pod's service account, else of `~/.kube/config`. */
export function connectKubernetes(config: Pick<Config, 'kubeconfigFile'>, clock: Clock): KubernetesApi {
  const loadKubeConfig = (): KubeConfig => {
    const kubeconfig = new KubeConfig();
    if (config.kubeconfigFile !== undefined) kubeconfig.loadFromFile(config.kubeconfigFile);
    else if (existsSync(serviceAccountNamespace)) kubeconfig.loadFromCluster();
    else kubeconfig.loadFromDefault();
    return kubeconfig;
  };
  return new KubernetesApi({ loadKubeConfig, clock, userAgent });
}
