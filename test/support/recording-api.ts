import { KubeConfig } from '@kubernetes/client-node';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { KubernetesApi } from '../../src/store/kubernetes/kubernetes-api.ts';
import type { ControlPlane } from './control-plane.ts';

/** A client of the API server, as the administrator, that records its requests, as `GET destinations` or `watch destinations`. */
export class RecordingApi extends KubernetesApi {
  readonly asked = new Set<string>();

  constructor({ kubeconfigPath }: ControlPlane) {
    const loadKubeConfig = (): KubeConfig => {
      const kubeconfig = new KubeConfig();
      kubeconfig.loadFromFile(kubeconfigPath);
      return kubeconfig;
    };
    super({ loadKubeConfig, clock: systemClock });
  }

  override request(...[method, path, options]: Parameters<KubernetesApi['request']>): ReturnType<KubernetesApi['request']> {
    this.asked.add(`${method} ${resourceOf(path)}`);
    return super.request(method, path, options);
  }

  override stream(...[path, options]: Parameters<KubernetesApi['stream']>): ReturnType<KubernetesApi['stream']> {
    this.asked.add(`watch ${resourceOf(path)}`);
    return super.stream(path, options);
  }
}

function resourceOf(path: string): string {
  const [root, ...rest] = path.split('/').slice(1);
  const within = rest.slice(root === 'api' ? 1 : 2);
  return (within[0] === 'namespaces' ? (within[2] ?? within[0]) : within[0]) ?? path;
}
