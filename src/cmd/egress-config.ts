import { z } from 'zod';
import type { ListedHost } from '../core/egress-policy.ts';
import { cidrList, hostList, listedHosts, proxyUrl } from './config-values.ts';

/** Egress rules of deliveries. Controllers check reachability by them, where no DeliveryPools define it. */
export interface EgressConfig {
  allowedCidrs: string[];
  allowedHosts: string[];
  /** Undefined: any. */
  onlyHosts: ListedHost[] | undefined;
  caFile: string | undefined;
  proxyUrl: string | undefined;
}

export const egressEnvironment = {
  POSTHORN_EGRESS_ALLOWED_CIDRS: cidrList
    .describe(
      'Networks that are not public and that deliveries of every organization may reach, as CIDRs separated by commas. Standalone adds the loopback addresses.',
    )
    .meta({ roles: ['controller', 'delivery', 'standalone'] }),
  POSTHORN_EGRESS_ALLOWED_HOSTS: hostList
    .describe(
      'Hosts that deliveries of every organization may reach although their addresses are private, separated by commas; `*.` may precede them, as in `*.shop.svc.cluster.local`.',
    )
    .meta({ roles: ['controller', 'delivery', 'standalone'] }),
  POSTHORN_EGRESS_ONLY_HOSTS: listedHosts
    .optional()
    .describe(
      'The only hosts that deliveries, cron jobs, tests and channels may reach, public or not, separated by commas: a host, `*.` and the end of one, or `*`; `ORGANIZATION/` in front makes it one of that organization alone, as in `*.example.com,acme/hooks.acme.example`. `-` means none. Addresses are checked as well. Default: any host.',
    )
    .meta({ roles: ['controller', 'delivery', 'standalone'] }),
  POSTHORN_EGRESS_CA_FILE: z
    .string()
    .min(1)
    .optional()
    .describe('PEM file of certificate authorities that deliveries trust besides the well-known ones.')
    .meta({ roles: ['delivery', 'standalone'] }),
  POSTHORN_EGRESS_PROXY_URL: proxyUrl
    .optional()
    .describe(
      'Proxy (CONNECT) with a fixed address, `http://[user:password@]host:port`, through which destinations with `useStaticIp` are reached. It receives checked addresses, not names.',
    )
    .meta({ roles: ['delivery', 'standalone'], secret: true }),
};

export function egressConfig(values: z.output<z.ZodObject<typeof egressEnvironment>>): EgressConfig {
  return {
    allowedCidrs: values.POSTHORN_EGRESS_ALLOWED_CIDRS,
    allowedHosts: values.POSTHORN_EGRESS_ALLOWED_HOSTS,
    onlyHosts: values.POSTHORN_EGRESS_ONLY_HOSTS,
    caFile: values.POSTHORN_EGRESS_CA_FILE,
    proxyUrl: values.POSTHORN_EGRESS_PROXY_URL,
  };
}
