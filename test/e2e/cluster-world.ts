import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { type PortForward, portForward } from '../support/port-forward.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import type { World } from './world.ts';

const system = 'posthorn-system';

export interface ClusterWorld extends World {
  /** Runs redis-cli beside the cluster's Redis. */
  redis(...command: string[]): Promise<string>;
}

/** Posthorn as pods of a real cluster, where `hack/cluster deploy` has put them; everything goes through kubectl. */
export async function startClusterWorld(): Promise<ClusterWorld> {
  const authority = createCertificateAuthority();
  await trust(readFileSync(authority.file, 'utf8'));
  const forward: PortForward = await portForward(system, 'service/posthorn-api', 80);
  return {
    url: `http://127.0.0.1:${forward.port}`,
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
        '--timeout=30s',
      ]);
    },
    redis: (...command) => kubectl(['-n', system, 'exec', 'deployment/redis', '--', 'redis-cli', ...command]),
    stop: async () => {
      await forward.stop();
      authority.remove();
    },
  };
}

/** Makes the delivery pods trust the CA of this test's receivers. */
async function trust(certificate: string): Promise<void> {
  await kubectlApply([
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'egress-ca', namespace: system }, data: { 'ca.crt': certificate } },
  ]);
  await kubectl(['-n', system, 'set', 'env', 'deployment/posthorn-delivery', 'POSTHORN_EGRESS_CA_FILE=/etc/posthorn-egress/ca.crt']);
  await kubectl(['-n', system, 'rollout', 'restart', 'deployment/posthorn-delivery']);
  await kubectl(['-n', system, 'rollout', 'status', 'deployment/posthorn-delivery', '--timeout=120s']);
}

function inNamespace(namespace: string | undefined): string[] {
  return namespace === undefined ? [] : ['-n', namespace];
}

/** An IPv4 address that pods reach: not the loopback, and not that of the pods' own bridge. */
function addressOfThisMachine(): string {
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    if (name.startsWith('phcni') || name.startsWith('veth') || name.startsWith('docker') || name.startsWith('br-')) continue;
    for (const { family, internal, address } of addresses ?? []) if (family === 'IPv4' && !internal) return address;
  }
  throw new Error('this machine has no address that pods could reach');
}
