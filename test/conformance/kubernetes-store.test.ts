import { systemClock } from '../../src/runtime/system-clock.ts';
import { KubernetesStore } from '../../src/store/kubernetes/kubernetes-store.ts';
import type { Version } from '../../src/store/store.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { kubernetesApi } from '../support/kubernetes-api.ts';
import { describeStore } from './store.ts';

describeStore(
  'kubernetes',
  async () => {
    const controlPlane = await startControlPlane({ controllerManager: true, crds: true });
    const api = kubernetesApi(controlPlane);
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
