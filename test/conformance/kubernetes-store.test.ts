import { KubeConfig } from '@kubernetes/client-node';
import { systemClock } from '../../src/runtime/clock.ts';
import { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import type { Version } from '../../src/store/store.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { describeStore } from './store.ts';

describeStore(
  'kubernetes',
  async () => {
    const controlPlane = await startControlPlane({ controllerManager: true });
    await controlPlane.applyCrds();
    const loadKubeConfig = (): KubeConfig => {
      const config = new KubeConfig();
      config.loadFromFile(controlPlane.kubeconfigPath);
      return config;
    };
    const api = new KubernetesApi({ loadKubeConfig, clock: systemClock });
    return {
      store: new KubernetesStore({ api, clock: systemClock }),
      // From before the API server's watch cache began.
      expiredVersion: async () => '1' as Version,
      close: async () => {
        await api.close();
        await controlPlane.stop();
      },
    };
  },
  120_000,
);
