import { KubeConfig } from '@kubernetes/client-node';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import type { ControlPlane } from './control-plane.ts';

/** A client of the API server, as the administrator. */
export function kubernetesApi({ kubeconfigPath }: ControlPlane): KubernetesApi {
  const loadKubeConfig = (): KubeConfig => {
    const kubeconfig = new KubeConfig();
    kubeconfig.loadFromFile(kubeconfigPath);
    return kubeconfig;
  };
  return new KubernetesApi({ loadKubeConfig, clock: systemClock });
}
