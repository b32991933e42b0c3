import { systemClock } from '../runtime/system-clock.ts';
import { KubernetesStore } from '../store/kubernetes/kubernetes-store.ts';
import type { Config } from './config.ts';
import { connectKubernetes } from './kubernetes.ts';
import { leaseNamespace } from './lease-namespace.ts';
import { type UninstallOptions, uninstall } from './uninstall.ts';

/** `posthorn uninstall`, by the configuration of the process. */
export async function uninstallFromCluster(
  config: Config,
  command: Pick<UninstallOptions, 'controller' | 'deletesOrganizations' | 'deletesCrds'>,
  write: (line: string) => void,
): Promise<void> {
  const clock = systemClock;
  const api = connectKubernetes(config, clock);
  try {
    const store = new KubernetesStore({ api, clock });
    await uninstall({ ...command, api, store, clock, namespace: leaseNamespace(config), installation: config.installation, write });
  } finally {
    await api.close();
  }
}
