import type { PosthornObject } from '../../resources/kinds.ts';
import { selectorLabels } from './pool-names.ts';

/** Where workers must get to besides DNS and public addresses. */
export interface AllowedEgress {
  /** TCP ports of servers of the installation, such as Redis, wherever these are. */
  ports: readonly number[];
  /** Networks that deliveries may reach. */
  cidrs: readonly string[];
  /** Deliveries may reach hosts that are known by name alone, so every private address must be open; the worker itself checks closer. */
  hasHosts: boolean;
}

/** Non-public networks for a NetworkPolicy: the worker refuses the rest. */
const privateNetworks = {
  '0.0.0.0/0': ['10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'],
  '::/0': ['fc00::/7', 'fe80::/10'],
};
/** Where the metadata services of clouds are. */
const linkLocalNetworks = { '0.0.0.0/0': ['169.254.0.0/16'], '::/0': ['fe80::/10'] };

/** More than that many networks of organizations are not listed: an object has to stay small. */
const cidrsMax = 256;

/** Lets the pods of a pool reach their targets, and be scraped for health and metrics. */
export function networkPolicySpec(
  pool: Pick<PosthornObject<'DeliveryPool'>, 'metadata'>,
  opsPort: number,
  { ports, cidrs, hasHosts }: AllowedEgress,
  metricsFrom: readonly Record<string, unknown>[],
): Record<string, unknown> {
  const isOpen = hasHosts || cidrs.length > cidrsMax;
  const blocks = Object.entries(isOpen ? linkLocalNetworks : privateNetworks).map(([cidr, except]) => ({ ipBlock: { cidr, except } }));
  const listed = isOpen ? [] : cidrs.map((cidr) => ({ ipBlock: { cidr } }));
  return {
    podSelector: { matchLabels: selectorLabels(pool) },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ ...(metricsFrom.length > 0 && { from: metricsFrom }), ports: [{ port: opsPort, protocol: 'TCP' }] }],
    egress: [
      {
        ports: [
          { port: 53, protocol: 'UDP' },
          { port: 53, protocol: 'TCP' },
        ],
      },
      ...(ports.length === 0 ? [] : [{ ports: ports.map((port) => ({ port, protocol: 'TCP' })) }]),
      { to: [...blocks, ...listed] },
    ],
  };
}
