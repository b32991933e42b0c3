import { KubeConfig } from '@kubernetes/client-node';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import type { ControlPlane } from './control-plane.ts';
import { tokenOfRole } from './service-account-tokens.ts';

/** A client with the rights of the controller's service account in config/rbac, and no others. The namespace posthorn-system must be there. */
export async function controllerApi(plane: ControlPlane): Promise<KubernetesApi> {
  const file = plane.writeKubeconfig({ token: await tokenOfRole(plane, 'controller') });
  const loadKubeConfig = (): KubeConfig => {
    const kubeconfig = new KubeConfig();
    kubeconfig.loadFromFile(file);
    return kubeconfig;
  };
  return new KubernetesApi({ loadKubeConfig, clock: systemClock });
}
