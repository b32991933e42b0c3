import { networkInterfaces } from 'node:os';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { deployedChart, helm } from '../support/helm.ts';
import { portForward } from '../support/port-forward.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import type { World } from './world.ts';

const system = 'posthorn-system';

export interface ClusterWorld extends World {
  /** Runs redis-cli beside the cluster's Redis. */
  redis(...command: string[]): Promise<string>;
}

/** As `startInstalledWorld`, and its workers trust the authority of the world. */
export async function startClusterWorld(): Promise<ClusterWorld> {
  const authority = createCertificateAuthority();
  await trust(authority.file);
  return startInstalledWorld(authority);
}

/** Posthorn as pods of a real cluster, where `hack/cluster deploy` has put them; everything goes through kubectl. */
export async function startInstalledWorld(authority: CertificateAuthority = createCertificateAuthority()): Promise<ClusterWorld> {
  const [api, senders] = await Promise.all(['api', 'ingest'].map((role) => portForward(system, `service/posthorn-${role}`, 80)));
  if (api === undefined || senders === undefined) throw new Error('nothing is forwarded');
  return {
    url: `http://127.0.0.1:${api.port}`,
    ingestUrl: `http://127.0.0.1:${senders.port}`,
    receiverAddress: addressOfThisMachine(),
    authority,
    apply: kubectlApply,
    remove: async ({ kind, metadata }) => {
      await kubectl(['delete', kind, metadata.name, ...inNamespace(metadata.namespace), '--wait=true', '--timeout=60s']);
    },
    waitUntilReady: async ({ kind, metadata }) => {
      await kubectl([
        'wait',
        '--for=condition=Ready',
        `${kind.toLowerCase()}/${metadata.name}`,
        ...inNamespace(metadata.namespace),
        '--timeout=60s',
      ]);
    },
    redis: (...command) => kubectl(['-n', system, 'exec', 'statefulset/posthorn-redis', '--', 'redis-cli', ...command]),
    stop: async () => {
      await Promise.all([api.stop(), senders.stop()]);
      authority.remove();
    },
  };
}

/** Makes the delivery pods trust a CA. */
async function trust(certificateFile: string): Promise<void> {
  const value = `egress.caCertificates=${certificateFile}`;
  await replacingWorkers(() =>
    helm('upgrade', 'posthorn', deployedChart(), '--namespace', system, '--reset-then-reuse-values', '--set-file', value, '--wait'),
  );
}

/** Makes a change of what the workers of an installation find in their environment and their files, and waits until those that find it have replaced them. */
export async function replacingWorkers(change: () => Promise<unknown>, namespace = system): Promise<void> {
  const workers = 'deployment/posthorn-delivery-default';
  // Hash of what the workers find in their environment and their files.
  const hash = (): Promise<string> =>
    kubectl(['-n', namespace, 'get', workers, '-o', 'jsonpath={.spec.template.metadata.annotations.posthorn\\.dev/config-hash}']);
  const before = await hash();
  await change();
  await eventually('the controller to give the workers other files', 180_000, async () => ((await hash()) === before ? undefined : true));
  await kubectl(['-n', namespace, 'rollout', 'status', workers, '--timeout=180s']);
}

function inNamespace(namespace: string | undefined): string[] {
  return namespace === undefined ? [] : ['-n', namespace];
}

/** An IPv4 address that pods reach: not the loopback, and not that of the pods' own bridge. */
export function addressOfThisMachine(): string {
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    if (name.startsWith('phcni') || name.startsWith('veth') || name.startsWith('docker') || name.startsWith('br-')) continue;
    for (const { family, internal, address } of addresses ?? []) if (family === 'IPv4' && !internal) return address;
  }
  throw new Error('this machine has no address that pods could reach');
}
