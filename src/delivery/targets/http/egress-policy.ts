import ipaddr from 'ipaddr.js';
import type { OrganizationRecord } from '../../../core/records.ts';

export interface EgressRules {
  /** Networks that may be reached although they are not public. */
  allowedCidrs: readonly string[];
  /** Host names, `*.` at the start standing for any labels, whose private addresses may be reached. */
  allowedHosts: readonly string[];
}

/** Where requests of an organization may go besides public addresses: where all of them may, and what it allows itself. */
export function egressRules(all: EgressRules, organization: OrganizationRecord | null): EgressRules {
  const { allowedCidrs = [], allowedHosts = [] } = organization?.egress ?? {};
  return { allowedCidrs: [...all.allowedCidrs, ...allowedCidrs], allowedHosts: [...all.allowedHosts, ...allowedHosts] };
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Metadata services of the clouds; no rule allows them. */
const metadataAddresses = new Set(
  ['169.254.169.254', '168.63.129.16', '100.100.100.200', 'fd00:ec2::254'].map((text) => ipaddr.parse(text).toNormalizedString()),
);
/** The only part of IPv6 that is given out (RFC 4291 section 2.4); `range` says unicast of whatever it does not know. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');
/** IPv6 networks that gateways, and some systems, connect as IPv4, and the first byte of the IPv4 address: RFC 4291 section 2.5.5.1, 6052, 7915, 3056. */
const embeddings = (
  [
    ['::/96', 12],
    ['64:ff9b::/96', 12],
    ['::ffff:0:0:0/96', 12],
    ['2002::/16', 2],
  ] as const
).map(([cidr, firstByte]) => ({ network: ipaddr.IPv6.parseCIDR(cidr), firstByte }));
/** Ranges that a host pattern opens. Loopback and link-local ones need a CIDR. */
const rangesForHosts = new Set(['private', 'uniqueLocal', 'carrierGradeNat']);

/** Servers that no delivery may reach, whatever is allowed: the API server, Redis. More may be found while the process runs. */
export class RefusedAddresses {
  readonly #addresses = new Set<string>();

  add(address: string, port: number): void {
    this.#addresses.add(`${normal(address)} ${port}`);
  }

  /** `address` in its normal form. */
  has(address: string, port: number): boolean {
    return this.#addresses.has(`${address} ${port}`);
  }
}

/** Decides which addresses a delivery may connect to: public ones, and what the rules allow (DESIGN section 8). */
export class EgressPolicy {
  readonly #cidrs: readonly [Address, number][];
  readonly #hosts: readonly string[];
  readonly #refused: RefusedAddresses;

  constructor(rules: EgressRules, refused: RefusedAddresses) {
    this.#cidrs = rules.allowedCidrs.map((cidr) => ipaddr.parseCIDR(cidr));
    this.#hosts = rules.allowedHosts.map((host) => host.toLowerCase());
    this.#refused = refused;
  }

  /** `host` is the name in the URL, `address` the IP address that it stands for; any spelling of either. */
  allows(host: string, address: string, port: number): boolean {
    if (!ipaddr.isValid(address)) return false;
    const ip = withoutZone(address);
    const isNeverAllowed = [ip, ...embeddedIn(ip)].some((each) => {
      const text = each.toNormalizedString();
      return metadataAddresses.has(text) || this.#refused.has(text, port);
    });
    if (isNeverAllowed) return false;
    const range = ip.range();
    if (range === 'unicast' && (ip instanceof ipaddr.IPv4 || ip.match(globalUnicast))) return true;
    return this.#cidrs.some(([network, bits]) => contains(network, bits, ip)) || (rangesForHosts.has(range) && this.#allowsHost(host));
  }

  #allowsHost(host: string): boolean {
    const name = host.toLowerCase().replace(/\.$/, '');
    return this.#hosts.some((pattern) => (pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern));
  }
}

function contains(network: Address, bits: number, address: Address): boolean {
  if (network instanceof ipaddr.IPv4) return address instanceof ipaddr.IPv4 && address.match(network, bits);
  return address instanceof ipaddr.IPv6 && address.match(network, bits);
}

/** The IPv4 address that an IPv6 one stands for, if it does. */
function embeddedIn(address: Address): ipaddr.IPv4[] {
  if (address instanceof ipaddr.IPv4) return [];
  const bytes = address.toByteArray();
  return embeddings
    .filter(({ network }) => address.match(network))
    .map(({ firstByte }) => new ipaddr.IPv4(bytes.slice(firstByte, firstByte + 4)));
}

/** A zone says by which interface an address is reached, not which one it is. */
function withoutZone(address: string): Address {
  return ipaddr.process(address.replace(/%.*$/, ''));
}

function normal(address: string): string {
  return ipaddr.isValid(address) ? withoutZone(address).toNormalizedString() : address;
}
